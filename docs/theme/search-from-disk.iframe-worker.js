/* Browsers refuse workers to pages that are read from disk. There, the search runs in a hidden frame instead. */
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.body.append(script);
      });
      this.postMessage = async (data) => {
        await this.loaded;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      };
    }
  }
  window.Worker = window.IFrameWorker = FrameWorker;
}
