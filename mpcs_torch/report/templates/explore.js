"use strict";
// The page of `mpcs explore`: it shows a state, changes it, and remembers it. The numbers are those of explore_core.js.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = explorer.readRows(data), { classes, models, columns } = rows;
  const at = (id) => document.getElementById(id);
  const MOST_IN_MATRIX = 30, MOST_LISTED = 60, MOST_GROUPS = 50;
  const SERIES = ["var(--series-1)", "var(--series-2)", "var(--series-3)", "var(--series-4)"];

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
  const number = (value) => (Number.isNaN(value) ? "unknown" : String(Number(value.toPrecision(3))));
  const share = (value) => (value > 0.995 && value < 1 ? (100 * value).toFixed(2) : number(100 * value));
  const percent = (value) => (Number.isNaN(value) ? "unknown" : `${share(value)} %`);
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const ends = (interval, scale) => (interval === null ? "" : ` [${number(scale * interval[0])}, ${number(scale * interval[1])}]`);
  const signed = (value, scale) => (Number.isNaN(value) ? "unknown" : `${value > 0 ? "+" : ""}${number(scale * value)}`);
  const names = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`);

  // --- State ------------------------------------------------------------------------------------------------------

  const initial = {
    source: data.concern, priors: null, limits: [], orders: [], kept: null, ...explorer.stateOf(data.concern, classes),
    isDearest: data.isNew, // whether the errors of the highest cost are dangerous, until somebody says which are
  };
  let found = []; // what the state does, by model
  let state = structuredClone(initial), selected = null, shownModel = 0;
  let past = [], future = [], lastTag = null;
  const FIELDS_KEPT = ["costs", "dangerous", "refer", "priors", "limits"];

  // Change the state; changes with the same tag one after the other are undone as one.
  const change = (tag, changes) => {
    const next = { ...state, ...changes };
    if (next.isDearest && "costs" in changes && !("dangerous" in changes)) {
      const most = explorer.highest(next.costs);
      next.dangerous = next.costs.map((row) => row.map((cost) => cost === most));
    }
    next.limits = next.limits.filter(({ of }) => of === null || next.dangerous[of].some(Boolean));
    const problem = problemOf(next);
    tell(problem);
    if (problem !== null) return false;
    if (tag === null || tag !== lastTag) past.push(state);
    [state, future, lastTag] = [next, [], tag];
    show();
    return true;
  };

  const problemOf = ({ costs, dangerous, refer, priors, factor }) => {
    const isSound = (value) => Number.isFinite(value) && value >= 0 && value < 1e300;
    if (!costs.every((row) => row.every(isSound))) return "A cost must be a number of at least 0.";
    if (!(explorer.highest(costs) > 0)) return "At least one error must cost more than 0.";
    if (!dangerous.some((row) => row.some(Boolean)) && explorer.releasedFactor({ costs, dangerous, factor }) === null) {
      return "At least one error must be dangerous where errors have costs of their own.";
    }
    if (refer !== null && !isSound(refer)) return "A referral must cost at least 0.";
    if (priors !== null && !(priors.every(isSound) && priors.some((each) => each > 0))) return "Frequencies must be at least 0, and one above.";
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
  const packed = (part) => ({ e: differences(part), r: part.refer, p: part.priors, l: part.limits.map(({ of, atMost }) => [of, atMost]) });
  const toLink = () => {
    const link = { ...packed(state), f: state.factor, d: state.isDearest, o: state.orders, k: state.kept && packed(state.kept) };
    if (JSON.stringify(state.source) !== JSON.stringify(initial.source)) link.s = state.source;
    return `#s=${encodeURIComponent(JSON.stringify(link))}`;
  };
  const isClass = (place) => Number.isInteger(place) && place >= 0 && place < classes.length;
  const unpacked = ({ e, r, p, l }) => {
    const costs = structuredClone(initial.costs), dangerous = structuredClone(initial.dangerous);
    for (const [i, j, cost, is] of e) {
      if (!isClass(i) || !isClass(j) || i === j) throw new Error("a class does not exist");
      [costs[i][j], dangerous[i][j]] = [Number(cost), Boolean(is)];
    }
    const limits = l.map(([of, atMost]) => ({ of, atMost: Number(atMost) }));
    if (!limits.every(({ of, atMost }) => (of === null || isClass(of)) && atMost > 0 && atMost < 1)) throw new Error("a limit is not between 0 and 1");
    if (new Set(limits.map(({ of }) => of)).size < limits.length) throw new Error("a limit is given twice");
    if (p !== null && p.length !== classes.length) throw new Error("the frequencies are not those of the classes");
    const part = { costs, dangerous, refer: r === null ? null : Number(r), priors: p === null ? null : p.map(Number), limits };
    const problem = problemOf({ ...part, factor: initial.factor });
    if (problem !== null) throw new Error(problem);
    return part;
  };
  const fromLink = (hash) => {
    const link = JSON.parse(decodeURIComponent(hash.slice(3)));
    const read = { ...unpacked(link), factor: Number(link.f), isDearest: link.d === true, orders: [], kept: link.k ? unpacked(link.k) : null, source: initial.source };
    if (link.s) { explorer.stateOf(link.s, classes); read.source = link.s; }
    for (const { worse, times, than } of link.o) {
      const isError = ([i, j]) => isClass(i) && (j === null || isClass(j));
      if (!isError(worse) || !isError(than) || !(times > 0)) throw new Error("an order names no errors");
      read.orders.push({ worse: [...worse], times: Number(times), than: [...than] });
    }
    if (!(read.factor > 0 && read.factor <= 1)) throw new Error("the factor is not between 0 and 1");
    return read;
  };
  const openLink = () => {
    if (!location.hash.startsWith("#s=") || location.hash === toLink()) return;
    try {
      const read = fromLink(location.hash);
      if (found.length) past.push(state); // a link that is opened on the page is undone as any other change
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

  const usual = models.map((model) => explorer.mostProbable(rows, model));
  const cellsOfUsual = usual.map((decisions) => explorer.countRows(rows, decisions, decisions)); // no state changes them
  const compute = (sure) => models.map((model, place) => {
    const used = explorer.inUse(state), decisions = explorer.decisionsOf(rows, model, used);
    const cells = explorer.countRows(rows, decisions, usual[place]);
    const usualCells = cellsOfUsual[place];
    const keptDecisions = state.kept && keptOf(model, place);
    const kept = keptDecisions && explorer.summarize(rows, explorer.countRows(rows, keptDecisions, usual[place]), used);
    return { decisions, cells, usualCells, ...explorer.summarize(rows, cells, used, sure), usual: explorer.summarize(rows, usualCells, used, sure), kept };
  });
  const keptCache = new Map();
  const keptOf = (model, place) => {
    const key = `${place} ${JSON.stringify(state.kept)}`;
    if (!keptCache.has(key)) keptCache.set(key, explorer.decisionsOf(rows, model, explorer.inUse(state.kept)));
    return keptCache.get(key);
  };

  // --- Showing ----------------------------------------------------------------------------------------------------

  let generation = 0;
  const show = () => {
    found = compute();
    showVerdict();
    showMatrix();
    showEditor();
    showOrders();
    showClasses();
    showResults();
    showTools();
    const own = ++generation;
    const later = [...columns.map((column, place) => () => showGroups(column, place)), ...frontierSteps(), showTaken];
    const next = () => {
      if (own !== generation || later.length === 0) return;
      later.shift()();
      setTimeout(next, 0);
    };
    setTimeout(next, 0);
    rememberLink();
  };

  const dearest = () => {
    const order = classes.map((_, i) => i).filter((i) => state.dangerous[i].some(Boolean) && rows.counts[i] > 0);
    const cost = (i) => Math.max(...state.costs[i].map((each, j) => (state.dangerous[i][j] ? each : 0)));
    const share = (i) => found[shownModel].byClass[i][0] / rows.counts[i];
    return order.sort((a, b) => cost(b) - cost(a) || share(b) - share(a));
  };
  const showVerdict = () => {
    const of = found[shownModel], told = dearest().slice(0, 2).map((i) => {
      const [errors, count, interval] = of.byClass[i];
      return `${errors} of ${count} ${classes[i]} (${percent(errors / count)}${ends(interval, 100)})`;
    });
    const { dangerous, accuracy, coverage, cost } = of.means;
    const before = Math.round(of.usual.byClass.reduce((sum, [errors]) => sum + errors, 0));
    const after = Math.round(of.byClass.reduce((sum, [errors]) => sum + errors, 0));
    const others = dearest().length > told.length ? ", and on others" : "";
    const by = state.limits.length ? "these costs and limits" : "these costs";
    const none = coverage.value === 0 ? " Every row is referred." : "";
    const verdict = told.length === 0 ? "No error is dangerous." :
      `${models[shownModel].name}, decided by ${by}, makes dangerous errors on ${names(told)}${others}.${none}`;
    const where = state.priors === null ? "" : " At the frequencies in use:";
    const more = `${plural(after, "dangerous error")} in the ${plural(rows.rows, "row")} of the file, ${before} by the most probable class.${where} ` +
      `${percent(dangerous.value)} dangerous, ${percent(accuracy.value)} right, ${percent(coverage.value)} decided, mean cost ${number(cost.value)}.`;
    at("verdict").textContent = verdict;
    at("more").textContent = more;
    at("announce").textContent = `${verdict} ${more}`;
  };

  const kindOf = (i, j) => (state.dangerous[i][j] ? "dangerous" : explorer.releasedFactor(state) === null ? "not dangerous" : "released");
  const pairs = () => {
    if (classes.length <= MOST_IN_MATRIX) return null;
    const counts = new Map();
    for (const { label, decision, count } of found[shownModel].usualCells) {
      if (label !== decision) counts.set(`${label} ${decision}`, count);
    }
    return [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_LISTED).map(([key]) => key.split(" ").map(Number));
  };
  const countsOf = (cells) => {
    const counts = new Map();
    for (const { label, decision, count } of cells) {
      const key = label * (classes.length + 1) + decision;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
    return (i, j) => counts.get(i * (classes.length + 1) + j) ?? 0;
  };
  const matrixButton = (i, j, count, share) => {
    const isSelected = selected !== null && selected[0] === i && selected[1] === j;
    const cost = number(state.costs[i][j]), label = `${classes[i]} taken for ${classes[j]}: ${count} of ${rows.counts[i]} rows, costs ${cost}, ${kindOf(i, j)}`;
    const attributes = { type: "button", "data-pair": `${i} ${j}`, "aria-label": label, "aria-pressed": String(isSelected), style: `--share: ${share}`, tabindex: "-1" };
    return element("button", attributes, count, element("small", {}, state.dangerous[i][j] ? element("span", { class: "mark" }, "◥ ") : null, `cost ${cost}`));
  };
  const showMatrix = () => {
    const active = document.activeElement?.dataset?.pair;
    const cells = at("decided").value === "usual" ? found[shownModel].usualCells : found[shownModel].cells;
    const countOf = countsOf(cells), referred = classes.some((_, i) => countOf(i, classes.length) > 0);
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
    const [i, j] = selected, countOf = countsOf(found[shownModel].cells), usualOf = countsOf(found[shownModel].usualCells);
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
  // What an order says, and by how many times one error is worse now; NaN where its errors have several costs.
  const judged = ({ worse, times, than }) => {
    const costs = costsOf(worse), isOne = costs.every((cost) => cost === costs[0]);
    const ratio = isOne ? costs[0] / Math.max(...costsOf(than)) : NaN;
    return { said: `${errorText(worse)} is about ${number(times)} times as bad as ${errorText(than)}`, ratio, holds: Math.abs(ratio / times - 1) < 1e-9 };
  };
  const showOrders = () => {
    at("orders").replaceChildren(...state.orders.map((order, place) => {
      const { said, ratio, holds } = judged(order);
      const remove = element("button", { type: "button", "data-order": place, "aria-label": `Forget: ${said}` }, "×");
      const now = Number.isNaN(ratio) ? "several costs now" : `${number(ratio)} times now`;
      return element("li", {}, `${said} ${holds ? "✓" : `– no longer so: ${now}`} `, remove);
    }));
  };

  const showClasses = () => {
    const body = at("classes").tBodies[0];
    const isMany = models.length > 1;
    if (!body) {
      at("classes").append(
        element("caption", {}, element("span", {}, "Dangerous errors of each class, by these costs and by the most probable class")),
        element("thead", {}, element("tr", {}, header("class"), header("rows", "col", true), header("frequency, %"), header("limit, %"),
        ...models.flatMap(({ name }) => [header(isMany ? `dangerous, ${name}` : "dangerous errors", "col", true), header(isMany ? `${name}, most probable class` : "by the most probable class", "col", true)]))),
        element("tbody", {}, ...classes.map((name, i) => element("tr", {}, header(name, "row"), cell(rows.counts[i]),
          element("td", {}, element("input", { type: "text", inputmode: "decimal", "data-prior": i, "aria-label": `frequency of ${name} in percent`, disabled: rows.counts[i] === 0 })),
          element("td", {}, element("input", { type: "text", inputmode: "decimal", placeholder: "none", "data-limit": i, "aria-label": `limit on dangerous errors of ${name} in percent` })),
          ...models.flatMap(() => [cell(""), cell("")])))),
      );
    }
    for (const [i, row] of [...at("classes").tBodies[0].rows].entries()) {
      const told = found.flatMap((of) => [of.byClass[i], of.usual.byClass[i]]);
      for (const [place, [errors, count, interval]] of told.entries()) {
        const target = row.cells[4 + place];
        target.textContent = count === 0 ? "no row" : place % 2 === 0 ? `${errors} (${percent(errors / count)}${ends(interval, 100)})` : `${errors}`;
        target.dataset.value = JSON.stringify([errors, count, interval]);
      }
      const [prior, limit] = row.querySelectorAll("input");
      const share = state.priors === null ? rows.counts[i] / rows.rows : state.priors[i];
      if (document.activeElement !== prior) prior.value = number(100 * share);
      const ofClass = state.limits.find(({ of }) => of === i);
      if (document.activeElement !== limit) limit.value = ofClass ? number(100 * ofClass.atMost) : "";
      limit.disabled = !state.dangerous[i].some(Boolean);
    }
    const ofAll = state.limits.find(({ of }) => of === null);
    if (document.activeElement !== at("limit-all")) at("limit-all").value = ofAll ? number(100 * ofAll.atMost) : "";
    at("limit-all").disabled = state.priors !== null;
    at("limit-all").title = state.priors === null ? "" : "A limit of all rows holds at the frequencies of the file only: limit a class.";
    at("as-in-file").disabled = state.priors === null;
  };

  const COLUMNS = [["dangerous", "dangerous errors", 100, "%"], ["accuracy", "right", 100, "%"], ["coverage", "decided", 100, "%"], ["cost", "mean cost", 1, ""]];
  const valueCell = ({ value, interval }, scale, isChange, id) => {
    const target = cell(`${isChange ? signed(value, scale) : number(scale * value)}${ends(interval, scale)}`);
    target.dataset.value = JSON.stringify(Number.isNaN(value) ? null : value);
    target.dataset.id = id;
    return target;
  };
  const showResults = () => {
    const line = (title, means, isChange, id) => element("tr", {}, header(title, "row"),
      ...COLUMNS.map(([name, , scale]) => valueCell(means[name], scale, isChange, `${id} ${name}`)));
    const isMany = models.length > 1;
    at("results").replaceChildren(
      element("caption", {}, element("span", {}, "Means over all rows, with 95 % intervals")),
      element("thead", {}, element("tr", {}, header("decided by"), ...COLUMNS.map(([, title, , unit]) => header(unit ? `${title}, ${unit}` : title, "col", true)))),
      element("tbody", {}, ...models.flatMap(({ name }, place) => {
        const of = found[place], about = isMany ? `${name}: ` : "";
        return [line(`${about}these costs`, of.means, false, `${place} now`), line(`${about}most probable class`, of.usual.means, false, `${place} usual`),
          line(`${about}change`, of.changes, true, `${place} change`), ...(of.kept ? [line(`${about}kept costs`, of.kept.means, false, `${place} kept`)] : [])];
      })),
    );
    const told = [data.about];
    if (state.priors !== null && state.limits.some(({ of }) => of === null)) told.push("The limit of all rows holds at the frequencies of the file alone, so it is not used now.");
    if (state.priors !== null) told.push("Means are those at the frequencies in use, and so are the probabilities that decide.");
    if (state.kept !== null) told.push("Decisions by the kept costs are measured by the costs and dangerous errors that are set now.");
    if (state.refer === null && found.some((of) => of.means.coverage.value < 1)) told.push("Without a price, a referral counts no cost.");
    const { limits } = explorer.inUse(state);
    for (const { of, atMost } of limits) {
      const count = of === null ? rows.rows : rows.counts[of];
      const level = 0.05 / limits.length;
      if (explorer.mostErrors(count, atMost, level) < 0) {
        const needed = Math.ceil(Math.log(level) / Math.log1p(-atMost));
        told.push(`A limit of ${percent(atMost)} of ${of === null ? "all rows" : classes[of]} takes ${needed} rows, and the file has ${count}: all rows that could be such an error are referred.`);
      }
    }
    if (data.concern.answers) told.push("Coarse answers of the concern are kept in the file, but not tried here.");
    at("results-note").textContent = told.join(" ");
  };

  const showGroups = (column, place) => {
    const byModel = found.map((of, model) => explorer.countRows(rows, of.decisions, usual[model], column)
      .map((cells) => explorer.summarize(rows, cells, explorer.inUse(state), ["dangerous", "accuracy"])));
    const order = column.groups.map((_, group) => group).sort((a, b) =>
      (byModel[shownModel][b].means.dangerous.value || 0) - (byModel[shownModel][a].means.dangerous.value || 0));
    const isMany = models.length > 1;
    const lines = order.slice(0, MOST_GROUPS).flatMap((group) => models.map(({ name }, model) => {
      const { means, changes, rows: count } = byModel[model][group];
      const title = column.groups[group] + (isMany ? `: ${name}` : "");
      return element("tr", {}, header(title, "row"), cell(count),
        ...COLUMNS.map(([name, , scale]) => valueCell(means[name], scale, false, `${place} ${group} ${model} ${name}`)),
        valueCell(changes.dangerous, 100, true, `${place} ${group} ${model} change`));
    }));
    const more = order.length > MOST_GROUPS ? `; the first ${MOST_GROUPS} of ${order.length}` : "";
    const table = element("table", {},
      element("caption", {}, element("span", {}, `The most dangerous errors first: the worst of many groups looks worse than on new rows${more}`)),
      element("thead", {}, element("tr", {}, header(column.name), header("rows", "col", true),
        ...COLUMNS.map(([, title, , unit]) => header(unit ? `${title}, ${unit}` : title, "col", true)), header("change of dangerous, points", "col", true))),
      element("tbody", {}, ...lines));
    const section = at(`column-${place}`);
    section.querySelector(".scroll").replaceChildren(table);
  };

  const frontierSteps = () => {
    const points = models.map(() => []);
    const steps = models.flatMap((model, place) => data.factors.map((factor) => () => {
      points[place].push([...explorer.frontierPoint(rows, model, explorer.inUse(state), factor), factor]);
    }));
    return [...steps, () => drawFrontier(points)];
  };
  const svg = (tag, attributes, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const ticks = (low, high) => {
    const rough = (high - low) / 4 || 1, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const list = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) list.push(Number(value.toPrecision(12)));
    return list;
  };
  let drawn = null;
  const drawFrontier = (points) => {
    drawn = points;
    const width = Math.max(280, Math.min(at("frontier").clientWidth, 720)), height = 320, top = 22, left = 44, bottom = 44;
    const own = found.map((of) => [100 * of.means.dangerous.value, 100 * of.means.accuracy.value]);
    const before = found.map((of) => [100 * of.usual.means.dangerous.value, 100 * of.usual.means.accuracy.value]);
    const lines = points.map((line) => line.map(([danger, accuracy]) => [100 * danger, 100 * accuracy]));
    const all = [...own, ...before, ...lines.flat()].filter((point) => point.every(Number.isFinite));
    if (all.length === 0) { at("frontier").replaceChildren(); return; }
    const range = (place) => {
      const values = all.map((point) => point[place]), low = Math.min(...values), high = Math.max(...values), room = (high - low) * 0.08 || 0.5;
      return [Math.max(0, low - room), high + room];
    };
    const [x0, x1] = range(0), [y0, y1] = range(1);
    const x = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - 12), y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - bottom - top);
    const parts = [];
    for (const value of ticks(x0, x1)) {
      parts.push(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom }),
        svg("text", { x: x(value), y: height - bottom + 16, "text-anchor": "middle" }, String(value)));
    }
    for (const value of ticks(y0, y1)) {
      parts.push(svg("line", { class: "grid", x1: left, x2: width - 12, y1: y(value), y2: y(value) }),
        svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    }
    parts.push(svg("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, "dangerous errors, % of rows"),
      svg("text", { x: 0, y: 10 }, "right, % of rows"));
    const polygon = (line) => line.map(([a, b]) => `${x(a)},${y(b)}`).join(" ");
    for (const [place, line] of lines.entries()) {
      const colour = SERIES[place % SERIES.length];
      parts.push(svg("polyline", { points: polygon(line), style: `stroke: ${colour}; fill: none; stroke-width: 1.5` }),
        ...line.map(([a, b]) => svg("circle", { cx: x(a), cy: y(b), r: 2, style: `fill: ${colour}` })));
      const mark = (point, style) => point.every(Number.isFinite) ? [svg("circle", { cx: x(point[0]), cy: y(point[1]), r: 6, style })] : [];
      parts.push(...mark(before[place], `stroke: ${colour}; fill: var(--page); stroke-width: 2`), ...mark(own[place], `fill: ${colour}; stroke: var(--page); stroke-width: 1`));
    }
    const told = models.map(({ name }, place) => `${name}: ${number(own[place][0])} % dangerous and ${number(own[place][1])} % right by these costs, ` +
      `${number(before[place][0])} and ${number(before[place][1])} by the most probable class`).join("; ");
    at("frontier").replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Accuracy against dangerous errors. ${told}.` }, ...parts));
    const key = models.flatMap(({ name }, place) => [element("span", { class: "key", style: `background: ${SERIES[place % SERIES.length]}` }), `${name} `]);
    at("frontier-text").replaceChildren(...key, "● these costs, ○ the most probable class. The line, without referrals and limits: what " +
      "decisions do where a harmless error costs from as much as the worst error to a hundredth of it. A referred row is not right. Left and up is better.");
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

  const limitText = ({ of, atMost }) => `--limit 'dangerous <= ${Number((100 * atMost).toPrecision(6))} % of ${of === null ? "samples" : classes[of].replaceAll("'", "'\\''")}'`;
  const showTaken = () => {
    at("yaml").textContent = yamlText();
    const priors = state.priors === null ? "" : ` --priors ${explorer.inUse(state).priors.map((each) => Number(each.toPrecision(6))).join(",")}`;
    const limits = explorer.inUse(state).limits.map((limit) => ` ${limitText(limit)}`).join("");
    at("commands").textContent = `mpcs decide fit validation.csv --concern concern.yaml${limits}${priors}${data.reading} --out rule.pt\n` +
      `mpcs decide apply rule.pt test.csv${data.reading} --out decisions.csv\nmpcs score decisions.csv --concern concern.yaml --html report.html`;
  };
  const yamlText = () => explorer.toYaml(explorer.plainOf(state, classes), state.orders.map(judged)
    .filter(({ holds }) => holds).map(({ said }) => said).join("\n"));

  // --- Events -----------------------------------------------------------------------------------------------------

  // A number, with a point or a comma; null for none, NaN for what is no number.
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
    if (classes.length > MOST_IN_MATRIX) target = buttons[buttons.indexOf(event.target) + step[0] + step[1]];
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
  const limitChange = (of, value) => {
    if (value !== null && !(value > 0 && value < 100)) { tell("A limit is between 0 and 100 %."); return; }
    const others = state.limits.filter((limit) => limit.of !== of);
    change(`limit ${of}`, { limits: value === null ? others : [...others, { of, atMost: value / 100 }] });
  };
  at("limit-all").addEventListener("input", () => limitChange(null, numberOf(at("limit-all"))));
  at("classes").addEventListener("input", ({ target }) => {
    if (target.dataset.limit !== undefined) limitChange(Number(target.dataset.limit), numberOf(target));
    if (target.dataset.prior === undefined) return;
    const value = numberOf(target), chosen = Number(target.dataset.prior);
    if (!(value >= 0)) { tell("A frequency is a number of at least 0."); return; }
    const now = state.priors ?? Array.from(rows.counts, (count) => count / rows.rows);
    change(`prior ${chosen}`, { priors: now.map((each, i) => (i === chosen ? value / 100 : each)) });
  });
  at("as-in-file").addEventListener("click", () => change(null, { priors: null }));
  at("decided").addEventListener("change", showMatrix);
  at("model").addEventListener("change", () => { shownModel = Number(at("model").value); show(); });
  at("keep").addEventListener("click", () => change(null, { kept: Object.fromEntries(FIELDS_KEPT.map((name) => [name, state[name]])) }));
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
  at("open").addEventListener("change", async () => {
    const [file] = at("open").files;
    if (file) openYaml(await file.text());
    at("open").value = "";
  });
  const openYaml = (text) => {
    try {
      const source = explorer.fromYaml(text);
      return change(null, { ...explorer.stateOf(source, classes), source, orders: [], isDearest: false });
    } catch (error) {
      tell(`The file is not read: ${error instanceof explorer.ConcernProblem ? error.message : "it is no YAML of a concern"}.`);
      return false;
    }
  };
  at("copy").addEventListener("click", async () => {
    history.replaceState(null, "", toLink());
    try { await navigator.clipboard.writeText(location.href); tell(null); at("announce").textContent = "The link is copied."; }
    catch { tell("The browser does not let this page copy: copy the address of the page instead."); }
  });
  addEventListener("hashchange", () => { openLink(); show(); });
  addEventListener("resize", () => { if (drawn !== null) drawFrontier(drawn); });

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
  openLink();
  show();

  // For tests: what the page computes and shows.
  explorer.page = { rows, initial, openYaml, stateNow: () => state, yamlText, change, compute: (next) => { state = { ...initial, ...next }; return compute([]); } };
})();
