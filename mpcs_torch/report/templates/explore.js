"use strict";
// The page of `mpcs explore`: it shows a state, changes it, and remembers it. The numbers are those of explore_core.js.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = explorer.readRows(data), { classes, models, columns } = rows;
  const at = (id) => document.getElementById(id);
  const MAX_IN_MATRIX = 30, MAX_LISTED = 60, MAX_GROUPS = 50;

  // --- Text -------------------------------------------------------------------------------------------------------

  const element = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
    return node;
  };
  const cell = (text, isNumber = true) => element("td", { class: isNumber ? "n" : null }, text);
  const header = (text, scope = "col", isNumber = false) => element("th", { scope, class: isNumber ? "n" : null }, text);
  const number = (value) => String(Number(value.toPrecision(3)));
  const share = (value) => (value > 0.995 && value < 1 ? (100 * value).toFixed(2) : number(100 * value));
  const percent = (value) => `${share(value)} %`;
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  // A share in percent with its interval, such as 3 % [1.2, 6].
  const withBounds = (count, of, unit = " %") => {
    const bounds = explorer.boundsOf(rows, count, of);
    return bounds === null ? "no row" : `${share(count / of)}${unit} [${bounds.map((each) => number(100 * each)).join(", ")}]`;
  };
  const signed = (value) => `${value > 0 ? "+" : ""}${number(value)}`;
  const names = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`);

  // --- State ------------------------------------------------------------------------------------------------------

  const initial = {
    ...data.state, orders: [], kept: null,
    isDearest: data.isNew, // whether the errors of the highest cost are dangerous, until somebody says which are
  };
  let results = []; // of the state, by model
  let state = structuredClone(initial), selected = null, shownModel = 0;
  let past = [], future = [], lastTag = null;

  // Change the state; changes with the same tag one after the other are undone as one.
  const change = (tag, changes) => {
    const next = { ...state, ...changes };
    if (next.isDearest && "costs" in changes && !("dangerous" in changes)) {
      const most = explorer.highest(next.costs);
      next.dangerous = next.costs.map((row) => row.map((cost) => cost === most));
    }
    const problem = problemOf(next);
    tell(problem);
    if (problem !== null) return false;
    if (tag === null || tag !== lastTag) past.push(state);
    [state, future, lastTag] = [next, [], tag];
    show();
    return true;
  };

  const problemOf = ({ costs, dangerous, refer, factor }) => {
    const isSound = (value) => Number.isFinite(value) && value >= 0 && value < 1e300;
    if (!costs.every((row) => row.every(isSound))) return "A cost must be a number of at least 0.";
    if (!(explorer.highest(costs) > 0)) return "At least one error must cost more than 0.";
    if (!dangerous.some((row) => row.some(Boolean)) && explorer.releasedFactor({ costs, dangerous, factor }) === null) {
      return "At least one error must be dangerous where errors have costs of their own.";
    }
    if (refer !== null && !isSound(refer)) return "A referral must cost at least 0.";
    return null;
  };
  const tell = (problem) => {
    at("problem").hidden = problem === null;
    at("problem").textContent = problem ?? "";
  };

  const withCost = (costs, [i, j], cost) => costs.map((row, r) => (r === i ? row.map((each, c) => (c === j ? cost : each)) : row));
  // The costs and dangerous errors after the cost of one was set: what costs nothing is not dangerous.
  const costChange = (pair, cost) => ({
    costs: withCost(state.costs, pair, cost),
    ...(cost > 0 ? {} : { dangerous: withCost(state.dangerous, pair, false) }),
  });

  // --- The link ---------------------------------------------------------------------------------------------------

  const differences = ({ costs, dangerous }) => costs.flatMap((row, i) => row.flatMap((cost, j) =>
    cost === initial.costs[i][j] && dangerous[i][j] === initial.dangerous[i][j] ? [] : [[i, j, cost, Number(dangerous[i][j])]]));
  const packed = (part) => ({ e: differences(part), r: part.refer });
  const toLink = () => {
    const link = { ...packed(state), f: state.factor, d: state.isDearest, o: state.orders, k: state.kept && packed(state.kept) };
    return `#s=${encodeURIComponent(JSON.stringify(link))}`;
  };
  const isClass = (place) => Number.isInteger(place) && place >= 0 && place < classes.length;
  const unpacked = ({ e, r }) => {
    const costs = structuredClone(initial.costs), dangerous = structuredClone(initial.dangerous);
    for (const [i, j, cost, is] of e) {
      if (!isClass(i) || !isClass(j) || i === j) throw new Error("a class does not exist");
      [costs[i][j], dangerous[i][j]] = [Number(cost), Boolean(is)];
    }
    const part = { costs, dangerous, refer: r === null ? null : Number(r) };
    const problem = problemOf({ ...part, factor: initial.factor });
    if (problem !== null) throw new Error(problem);
    return part;
  };
  const fromLink = (hash) => {
    const link = JSON.parse(decodeURIComponent(hash.slice(3)));
    const read = { ...unpacked(link), factor: Number(link.f), isDearest: link.d === true, orders: [], kept: link.k ? unpacked(link.k) : null };
    for (const { worse, times, than } of link.o) {
      const isError = ([i, j]) => isClass(i) && (j === null || isClass(j));
      if (!isError(worse) || !isError(than) || !(times > 0)) throw new Error("an order names no errors");
      read.orders.push({ worse: [...worse], times: Number(times), than: [...than] });
    }
    if (!(read.factor > 0 && read.factor <= 1)) throw new Error("the factor is not between 0 and 1");
    return read;
  };
  const openLink = (hash) => {
    if (!hash.startsWith("#s=") || hash === toLink()) return;
    try {
      const read = fromLink(hash);
      if (results.length) past.push(state); // a link that is opened on the page is undone as any other change
      [state, future, lastTag] = [read, [], null];
    } catch (error) {
      tell(`The link does not fit this page (${error.message}): it was left out.`);
    }
  };
  let linkTimer = 0;
  const rememberLink = () => {
    clearTimeout(linkTimer);
    linkTimer = setTimeout(() => history.replaceState(null, "", toLink()), 200);
  };

  // --- Computing --------------------------------------------------------------------------------------------------

  const usual = models.map((model) => explorer.countRows(rows, explorer.mostProbable(rows, model))); // no state changes them
  const compute = () => models.map((model, place) => {
    const decisions = explorer.decide(rows, model, state.costs, state.refer), counts = explorer.countRows(rows, decisions);
    const kept = state.kept && explorer.summarize(rows, keptCounts(model, place), state);
    return { decisions, counts, now: explorer.summarize(rows, counts, state), usual: explorer.summarize(rows, usual[place], state), kept };
  });
  const keptCache = new Map();
  const keptCounts = (model, place) => {
    const key = `${place} ${JSON.stringify(state.kept)}`;
    if (!keptCache.has(key)) keptCache.set(key, explorer.countRows(rows, explorer.decide(rows, model, state.kept.costs, state.kept.refer)));
    return keptCache.get(key);
  };

  // --- Showing ----------------------------------------------------------------------------------------------------

  let generation = 0;
  const show = () => {
    results = compute();
    showVerdict();
    showMatrix();
    showEditor();
    showOrders();
    showClasses();
    showResults();
    showTools();
    const shown = ++generation;
    const later = [...columns.map((column, place) => () => showGroups(column, place)), showNext];
    const next = () => {
      if (shown !== generation || later.length === 0) return;
      later.shift()();
      setTimeout(next, 0);
    };
    setTimeout(next, 0);
    rememberLink();
  };

  const dearest = () => {
    const order = classes.map((_, i) => i).filter((i) => state.dangerous[i].some(Boolean) && rows.counts[i] > 0);
    const cost = (i) => Math.max(...state.costs[i].map((each, j) => (state.dangerous[i][j] ? each : 0)));
    const share = (i) => results[shownModel].now.byClass[i][0] / rows.counts[i];
    return order.sort((a, b) => cost(b) - cost(a) || share(b) - share(a));
  };
  const showVerdict = () => {
    const { now, usual: before } = results[shownModel];
    const worst = dearest().slice(0, 2).map((i) => {
      const [errors, count] = now.byClass[i];
      return `${errors} of ${count} ${classes[i]} (${withBounds(errors, count)})`;
    });
    const others = dearest().length > worst.length ? ", and on others" : "";
    const none = now.decided === 0 ? " Every row is referred." : "";
    const verdict = worst.length === 0 ? "No error is dangerous." :
      `${models[shownModel].name}, decided by these costs, makes dangerous errors on ${names(worst)}${others}.${none}`;
    const more = `${plural(now.dangerous, "dangerous error")} in the ${plural(rows.rows, "row")} of the file, ${before.dangerous} by the most ` +
      `probable class. ${percent(now.dangerous / rows.rows)} dangerous, ${percent(now.right / rows.rows)} right, ` +
      `${percent(now.decided / rows.rows)} decided, mean cost ${number(now.cost)}.`;
    at("verdict").textContent = verdict;
    at("more").textContent = more;
    at("announce").textContent = `${verdict} ${more}`;
  };

  const kindOf = (i, j) => (state.dangerous[i][j] ? "dangerous" : explorer.releasedFactor(state) === null ? "not dangerous" : "released");
  const pairs = () => {
    if (classes.length <= MAX_IN_MATRIX) return null;
    const width = classes.length + 1;
    return [...usual[shownModel]].map(([key, count]) => [Math.floor(key / width), key % width, count]).filter(([i, j]) => i !== j)
      .sort((a, b) => b[2] - a[2]).slice(0, MAX_LISTED);
  };
  const countsOf = (counts) => (i, j) => counts.get(i * (classes.length + 1) + j) ?? 0;
  const matrixButton = (i, j, count, share) => {
    const isSelected = selected !== null && selected[0] === i && selected[1] === j;
    const cost = number(state.costs[i][j]), label = `${classes[i]} taken for ${classes[j]}: ${count} of ${rows.counts[i]} rows, costs ${cost}, ${kindOf(i, j)}`;
    const attributes = { type: "button", "data-pair": `${i} ${j}`, "aria-label": label, "aria-pressed": String(isSelected), style: `--share: ${share}`, tabindex: "-1" };
    return element("button", attributes, count, element("small", {}, state.dangerous[i][j] ? element("span", { class: "mark" }, "◥ ") : null, `cost ${cost}`));
  };
  const showMatrix = () => {
    const active = document.activeElement?.dataset?.pair;
    const countOf = countsOf(at("decided").value === "usual" ? usual[shownModel] : results[shownModel].counts);
    const referred = classes.some((_, i) => countOf(i, classes.length) > 0);
    const costOf = (i, j) => countOf(i, j) * state.costs[i][j];
    let most = 0;
    for (let i = 0; i < classes.length; i++) for (let j = 0; j < classes.length; j++) if (i !== j) most = Math.max(most, costOf(i, j));
    const share = (i, j) => (most > 0 ? costOf(i, j) / most : 0).toFixed(3);
    const listed = pairs();
    const table = element("table", { id: "matrix" });
    if (listed === null) {
      table.append(
        element("caption", {}, element("span", {}, `Rows of ${models[shownModel].name}: true class by decision`)),
        element("thead", {}, element("tr", {}, header("true ↓ decided →"), ...classes.map((name) => header(name)), referred ? header("referred") : null)),
        element("tbody", {}, ...classes.map((name, i) => element("tr", {}, header(name, "row"), ...classes.map((_, j) =>
          element("td", {}, i === j ? element("span", { class: "right" }, countOf(i, i)) : matrixButton(i, j, countOf(i, j), share(i, j)))),
        referred ? element("td", {}, element("span", { class: "right" }, countOf(i, classes.length))) : null))),
      );
    } else {
      table.append(
        element("caption", {}, element("span", {}, `The ${listed.length} most frequent confusions of ${models[shownModel].name}; others are set in words`)),
        element("thead", {}, element("tr", {}, header("true"), header("decided"), header("rows and cost"))),
        element("tbody", {}, ...listed.map(([i, j]) => element("tr", {}, header(classes[i], "row"), cell(classes[j], false), element("td", {}, matrixButton(i, j, countOf(i, j), share(i, j)))))),
      );
    }
    at("matrix").replaceWith(table);
    const buttons = [...table.querySelectorAll("button")];
    const current = buttons.find((each) => each.dataset.pair === active) ?? buttons.find((each) => each.getAttribute("aria-pressed") === "true") ?? buttons[0];
    if (current) current.tabIndex = 0;
    if (active !== undefined) current?.focus();
  };

  const showEditor = () => {
    at("editor").hidden = selected === null;
    if (selected === null) return;
    const [i, j] = selected, countOf = countsOf(results[shownModel].counts), usualOf = countsOf(usual[shownModel]);
    at("editor-title").textContent = `${classes[i]} taken for ${classes[j]}`;
    at("editor-text").textContent = `${models[shownModel].name}: ${countOf(i, j)} of ${rows.counts[i]} rows by these costs, ${usualOf(i, j)} by the most probable class.`;
    if (document.activeElement !== at("cost")) at("cost").value = state.costs[i][j];
    at("dangerous").checked = state.dangerous[i][j];
    at("dangerous").disabled = state.costs[i][j] === 0;
    at("release").hidden = !state.dangerous[i][j];
    at("release").textContent = `Release it: tolerable, at ${number(state.factor)} of its cost`;
  };

  const select = (id, options, value) => {
    const list = at(id);
    list.replaceChildren(...options.map((text, place) => element("option", { value: place }, text)));
    list.value = value;
  };

  const errorText = ([i, j]) => `${classes[i]} for ${j === null ? "any other class" : classes[j]}`;
  const costsOf = (error) => errorsOf(error).map(([i, j]) => state.costs[i][j]);
  // The sentence of an order, and by how many times one error is worse now; NaN where its errors have several costs.
  const judged = ({ worse, times, than }) => {
    const costs = costsOf(worse), isOne = costs.every((cost) => cost === costs[0]);
    const ratio = isOne ? costs[0] / Math.max(...costsOf(than)) : NaN;
    return { sentence: `${errorText(worse)} is about ${number(times)} times as bad as ${errorText(than)}`, ratio, holds: Math.abs(ratio / times - 1) < 1e-9 };
  };
  const showOrders = () => {
    at("orders").replaceChildren(...state.orders.map((order, place) => {
      const { sentence, ratio, holds } = judged(order);
      const remove = element("button", { type: "button", "data-order": place, "aria-label": `Forget: ${sentence}` }, "×");
      const now = Number.isNaN(ratio) ? "several costs now" : `${number(ratio)} times now`;
      return element("li", {}, `${sentence} ${holds ? "✓" : `– no longer so: ${now}`} `, remove);
    }));
  };

  const showClasses = () => {
    const isMany = models.length > 1;
    const titles = models.flatMap(({ name }) => (isMany ? [`dangerous, ${name}`, `${name}, most probable class`] : ["dangerous errors", "by the most probable class"]));
    at("classes").replaceChildren(
      element("caption", {}, element("span", {}, "Dangerous errors of each class, by these costs and by the most probable class")),
      element("thead", {}, element("tr", {}, header("class"), header("rows", "col", true), ...titles.map((title) => header(title, "col", true)))),
      element("tbody", {}, ...classes.map((name, i) => element("tr", {}, header(name, "row"), cell(rows.counts[i]), ...results.flatMap(({ now, usual: before }) => {
        const [errors, count] = now.byClass[i];
        return [valueCell(count ? `${errors} (${withBounds(errors, count)})` : "no row", errors, `class ${i}`), cell(count ? before.byClass[i][0] : "no row")];
      })))),
    );
  };

  const SHARES = [["dangerous", "dangerous errors, %"], ["right", "right, %"], ["decided", "decided, %"]];
  const valueCell = (text, value, id) => {
    const target = cell(text);
    target.dataset.value = JSON.stringify(value);
    target.dataset.id = id;
    return target;
  };
  const summaryCells = (summary, id) => [
    ...SHARES.map(([name]) => valueCell(withBounds(summary[name], summary.rows, ""), summary[name], `${id} ${name}`)),
    valueCell(summary.rows ? number(summary.cost) : "no row", summary.cost, `${id} cost`),
  ];
  const changeCells = (after, before, id) => [
    ...SHARES.map(([name]) => valueCell(signed((100 * (after[name] - before[name])) / after.rows), after[name] - before[name], `${id} ${name}`)),
    valueCell(signed(after.cost - before.cost), after.cost - before.cost, `${id} cost`),
  ];
  const showResults = () => {
    const line = (title, cells) => element("tr", {}, header(title, "row"), ...cells);
    const isMany = models.length > 1;
    at("results").replaceChildren(
      element("caption", {}, element("span", {}, "Shares of all rows, with 95 % intervals, and mean costs")),
      element("thead", {}, element("tr", {}, header("decided by"), ...SHARES.map(([, title]) => header(title, "col", true)), header("mean cost", "col", true))),
      element("tbody", {}, ...models.flatMap(({ name }, place) => {
        const { now, usual: before, kept } = results[place], about = isMany ? `${name}: ` : "";
        return [line(`${about}these costs`, summaryCells(now, `${place} now`)), line(`${about}most probable class`, summaryCells(before, `${place} usual`)),
          line(`${about}change`, changeCells(now, before, `${place} change`)), ...(kept ? [line(`${about}kept costs`, summaryCells(kept, `${place} kept`))] : [])];
      })),
    );
    const notes = [data.about];
    if (state.kept !== null) notes.push("Decisions by the kept costs are measured by the costs and dangerous errors that are set now.");
    if (state.refer === null && results.some(({ kept }) => kept !== null && kept.decided < kept.rows)) notes.push("Without a price, a referral counts no cost.");
    if (data.concern.answers) notes.push("Coarse answers of the concern are kept in the file, but not tried here.");
    at("results-note").textContent = notes.join(" ");
  };

  const showGroups = (column, place) => {
    const byModel = results.map(({ decisions }) => explorer.countRows(rows, decisions, column).map((counts) => explorer.summarize(rows, counts, state)));
    const rate = ({ dangerous, rows: all }) => dangerous / all || 0;
    const order = column.groups.map((_, group) => group).sort((a, b) => rate(byModel[shownModel][b]) - rate(byModel[shownModel][a]));
    const lines = order.slice(0, MAX_GROUPS).flatMap((group) => models.map(({ name }, model) => {
      const summary = byModel[model][group];
      const title = column.groups[group] + (models.length > 1 ? `: ${name}` : "");
      return element("tr", {}, header(title, "row"), cell(summary.rows), ...summaryCells(summary, `${place} ${group} ${model}`));
    }));
    const more = order.length > MAX_GROUPS ? `; the first ${MAX_GROUPS} of ${order.length}` : "";
    const titles = ["rows", ...SHARES.map(([, title]) => title), "mean cost"];
    at(`column-${place}`).querySelector(".scroll").replaceChildren(element("table", {},
      element("caption", {}, element("span", {}, `The most dangerous errors first: the worst of many groups looks worse than on new rows${more}`)),
      element("thead", {}, element("tr", {}, header(column.name), ...titles.map((title) => header(title, "col", true)))),
      element("tbody", {}, ...lines)));
  };

  const showTools = () => {
    at("undo").disabled = past.length === 0;
    at("redo").disabled = future.length === 0;
    at("drop").hidden = state.kept === null;
    const factor = explorer.releasedFactor(state);
    at("factor").disabled = factor === null;
    at("factor").title = factor === null ? "Errors have costs of their own." : "";
    if (document.activeElement !== at("factor")) at("factor").value = factor ?? state.factor;
    const ofDangerous = state.costs.flatMap((row, i) => row.filter((_, j) => state.dangerous[i][j]));
    if (document.activeElement !== at("least")) at("least").value = ofDangerous.length ? Math.min(...ofDangerous) : "";
    if (document.activeElement !== at("refer")) at("refer").value = state.refer ?? "";
  };

  const showNext = () => {
    at("yaml").textContent = yamlText();
    at("commands").textContent = `mpcs decide fit validation.csv --concern concern.yaml${data.reading} --out rule.pt\n` +
      `mpcs decide apply rule.pt test.csv${data.reading} --out decisions.csv\nmpcs score decisions.csv --concern concern.yaml --html report.html`;
  };
  const yamlText = () => explorer.toYaml(explorer.plainOf(state, initial, data.concern), state.orders.map(judged)
    .filter(({ holds }) => holds).map(({ sentence }) => sentence).join("\n"));

  // --- Events -----------------------------------------------------------------------------------------------------

  // A number, with a point or a comma; null for an empty text, NaN for any other.
  const numberOf = (input) => {
    const text = input.value.trim().replace(",", ".");
    const value = text === "" ? null : /^\d*\.?\d*(e[-+]?\d+)?$/i.test(text) && text !== "." ? Number(text) : NaN;
    input.setAttribute("aria-invalid", String(Number.isNaN(value)));
    return value;
  };
  at("matrix").parentElement.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-pair]");
    if (!button) return;
    selected = button.dataset.pair.split(" ").map(Number);
    showMatrix();
    showEditor();
    at("cost").focus();
    at("cost").select();
  });
  at("matrix").parentElement.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const from = event.target.dataset?.pair;
    if (!step || !from) return;
    event.preventDefault();
    const buttons = [...at("matrix").querySelectorAll("button")];
    let [i, j] = from.split(" ").map(Number), target = null;
    if (classes.length > MAX_IN_MATRIX) target = buttons[buttons.indexOf(event.target) + step[0] + step[1]];
    else {
      do [i, j] = [i + step[0], j + step[1]]; while (i === j);
      target = buttons.find((each) => each.dataset.pair === `${i} ${j}`);
    }
    if (!target) return;
    event.target.tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
  });
  at("cost").addEventListener("input", () => {
    const cost = numberOf(at("cost"));
    if (cost > 0) change(`cost ${selected}`, costChange(selected, cost));
  });
  at("cost").addEventListener("change", () => { // 0 may be the beginning of 0.5
    if (numberOf(at("cost")) === 0) change(`cost ${selected}`, costChange(selected, 0));
  });
  at("editor").addEventListener("keydown", (event) => { if (event.key === "Escape") at("editor").requestSubmit(); });
  at("dangerous").addEventListener("change", () => {
    const dangerous = withCost(state.dangerous, selected, at("dangerous").checked);
    if (!change(null, { dangerous, isDearest: false })) showEditor();
  });
  at("release").addEventListener("click", () => {
    const [i, j] = selected, cost = state.factor * state.costs[i][j];
    const changes = { costs: withCost(state.costs, selected, cost), dangerous: withCost(state.dangerous, selected, false), isDearest: false };
    if (change(null, changes)) at("cost").value = cost;
  });
  at("editor").addEventListener("submit", (event) => {
    event.preventDefault();
    const pair = selected.join(" ");
    selected = null;
    showMatrix();
    showEditor();
    at("matrix").querySelector(`[data-pair="${pair}"]`)?.focus();
  });
  const errorsOf = ([i, j]) => classes.map((_, other) => other).filter((other) => other !== i && (j === null || j === other)).map((other) => [i, other]);
  at("words").addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = (id) => (at(id).value === "any" ? null : Number(at(id).value));
    const worse = [chosen("worse-true"), chosen("worse-decision")], than = [chosen("than-true"), chosen("than-decision")];
    const times = numberOf(at("times"));
    if (worse[0] === worse[1] || than[0] === than[1]) { tell("An error takes one class for another: choose two different ones."); return; }
    const keys = errorsOf(than).map(String);
    if (errorsOf(worse).some((pair) => keys.includes(String(pair)))) { tell("Compare different errors."); return; }
    if (!(times > 0)) { tell("Say how many times as bad: a number above 0."); return; }
    const base = Math.max(...errorsOf(than).map(([i, j]) => state.costs[i][j]));
    if (!(base > 0)) { tell("The error to compare with must cost more than 0."); return; }
    const costs = errorsOf(worse).reduce((all, pair) => withCost(all, pair, times * base), state.costs);
    const others = state.orders.filter((order) => String(order.worse) !== String(worse));
    change(null, { costs, orders: [...others, { worse, times, than }] });
  });
  at("orders").addEventListener("click", (event) => {
    const place = event.target.dataset?.order;
    if (place !== undefined) change(null, { orders: state.orders.filter((_, each) => each !== Number(place)) });
  });
  at("factor").addEventListener("input", () => {
    const factor = numberOf(at("factor"));
    if (!(factor > 0 && factor <= 1)) { tell("A released error costs more than 0, and at most as much as a dangerous one."); return; }
    const isReleased = explorer.releasedFactor(state) !== null;
    const costs = state.costs.map((row, i) => row.map((cost, j) => (isReleased && i !== j && !state.dangerous[i][j] ? factor : cost)));
    change("factor", { factor, costs });
  });
  at("least").addEventListener("input", () => {
    const least = numberOf(at("least"));
    if (!(least > 0)) { tell("The cost from which on errors are dangerous must be above 0."); return; }
    change("least", { dangerous: state.costs.map((row, i) => row.map((cost, j) => i !== j && cost >= least)), isDearest: false });
  });
  at("refer").addEventListener("input", () => {
    const refer = numberOf(at("refer"));
    if (Number.isNaN(refer)) tell("The cost of a referral must be a number.");
    else change("refer", { refer });
  });
  at("decided").addEventListener("change", showMatrix);
  at("model").addEventListener("change", () => { shownModel = Number(at("model").value); show(); });
  at("keep").addEventListener("click", () => change(null, { kept: { costs: state.costs, dangerous: state.dangerous, refer: state.refer } }));
  at("drop").addEventListener("click", () => change(null, { kept: null }));
  const step = (from, to) => {
    if (from.length === 0) return;
    to.push(state);
    [state, lastTag] = [from.pop(), null];
    tell(null);
    show();
  };
  at("undo").addEventListener("click", () => step(past, future));
  at("redo").addEventListener("click", () => step(future, past));
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.type === "text") return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) { event.preventDefault(); step(past, future); }
    else if (key === "y" || (key === "z" && event.shiftKey)) { event.preventDefault(); step(future, past); }
  });
  at("download").addEventListener("click", () => {
    const link = element("a", { href: URL.createObjectURL(new Blob([yamlText()], { type: "application/yaml" })), download: "concern.yaml" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  at("copy").addEventListener("click", async () => {
    history.replaceState(null, "", toLink());
    try { await navigator.clipboard.writeText(location.href); tell(null); at("announce").textContent = "The link is copied."; }
    catch { tell("The browser does not let this page copy: copy the address of the page instead."); }
  });
  addEventListener("hashchange", ({ newURL }) => { openLink(new URL(newURL).hash); show(); }); // the state may have a new address by now

  // --- Begin ------------------------------------------------------------------------------------------------------

  select("model", models.map(({ name }) => name), 0);
  at("model-choice").hidden = models.length === 1;
  for (const id of ["worse-true", "than-true", "worse-decision", "than-decision"]) {
    select(id, classes, 0);
    if (id.endsWith("decision")) at(id).append(element("option", { value: "any" }, "any other class"));
  }
  [at("worse-decision").value, at("than-true").value, at("than-decision").value] = ["any", 1, 0];
  at("groups").append(...columns.map(({ name }, place) => element("section", { id: `column-${place}` }, element("h2", {}, `By ${name}`),
    element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `Table: by ${name}` }))));
  openLink(location.hash);
  show();

  // For tests: what the page computes and shows.
  explorer.page = { rows, initial, stateNow: () => state, yamlText, change, compute: (next) => { state = { ...initial, ...next }; return compute(); } };
})();
