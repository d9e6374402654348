"use strict";
// What `mpcs explore` computes: decisions by costs, counts of rows, and concerns as YAML. Nothing here touches the page.
// Classes are indices, and a decision is a class, or C for a referral. Matrices (C, C) have a row for each true class.
const explorer = (() => {
  const EPSILON = 2 ** -23; // probabilities are float32

  // --- Rows -------------------------------------------------------------------------------------------------------

  const toArray = (text, Type) => {
    const bytes = atob(text), array = new Uint8Array(bytes.length);
    for (let place = 0; place < bytes.length; place++) array[place] = bytes.charCodeAt(place);
    return new Type(array.buffer);
  };

  // The rows of a page: probabilities of each model, labels, the groups of each column, and the bounds of shares.
  const readRows = (data) => {
    const labels = toArray(data.labels, Uint32Array), size = data.classes.length;
    const counts = new Float64Array(size);
    for (const label of labels) counts[label]++;
    return {
      classes: data.classes, labels, counts, size, rows: labels.length,
      models: data.models.map(({ name, probs }) => ({ name, probs: toArray(probs, Float32Array) })),
      columns: data.columns.map(({ name, groups, codes }) => ({ name, groups, codes: toArray(codes, Uint32Array) })),
      bounds: new Map(data.bounds.map(({ of, table }) => [of, toArray(table, Float32Array)])),
    };
  };

  // The 95 % interval of a share, from the table of the package: counts, their lower bounds, their upper bounds. Counts
  // between two of the table, which it has for many rows, are interpolated. Null without rows.
  const boundsOf = (rows, count, of) => {
    const table = rows.bounds.get(of);
    if (table === undefined) return null;
    const lines = table.length / 3;
    let below = 0, above = lines - 1;
    while (above - below > 1) {
      const middle = (below + above) >> 1;
      if (table[middle] <= count) below = middle;
      else above = middle;
    }
    const share = (count - table[below]) / (table[above] - table[below]);
    return [1, 2].map((part) => (1 - share) * table[part * lines + below] + share * table[part * lines + above]);
  };

  // --- Decisions --------------------------------------------------------------------------------------------------

  const highest = (costs) => Math.max(...costs.map((row) => Math.max(...row)));

  // The decisions with the minimum expected cost, a referral among them unless its cost is null.
  const decide = (rows, model, costs, refer) => {
    const { size } = rows, columns = size + (refer === null ? 0 : 1);
    const flat = new Float64Array(size * columns), most = Math.max(highest(costs), refer ?? 0, Number.MIN_VALUE);
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) flat[i * columns + j] = i === j ? 0 : costs[i][j] / most;
      if (refer !== null) flat[i * columns + size] = refer / most;
    }
    const rounding = 16 * EPSILON * Math.sqrt(size);
    const decisions = new Int32Array(rows.rows), expected = new Float64Array(columns);
    for (let row = 0; row < rows.rows; row++) {
      const probs = model.probs.subarray(row * size, (row + 1) * size);
      expected.fill(0);
      for (let i = 0, at = 0; i < size; i++) {
        const p = probs[i];
        if (p === 0) at += columns;
        else for (let j = 0; j < columns; j++) expected[j] += p * flat[at++];
      }
      let least = Infinity;
      for (let j = 0; j < size; j++) if (expected[j] < least) least = expected[j];
      let best = -1; // of equal ones the most probable
      for (let j = 0; j < size; j++) {
        if (expected[j] <= least * (1 + rounding) && (best < 0 || probs[j] > probs[best])) best = j;
      }
      decisions[row] = refer !== null && expected[size] < least * (1 - rounding) ? size : best;
    }
    return decisions;
  };

  const mostProbable = (rows, model) => {
    const { size } = rows, decisions = new Int32Array(rows.rows);
    for (let row = 0; row < rows.rows; row++) {
      let best = 0;
      for (let j = 1; j < size; j++) if (model.probs[row * size + j] > model.probs[row * size + best]) best = j;
      decisions[row] = best;
    }
    return decisions;
  };

  // --- Counts -----------------------------------------------------------------------------------------------------

  // How many rows have each true class and decision, by label * (C + 1) + decision: a map for each group of a column, or
  // one for all rows without a column.
  const countRows = (rows, decisions, column = null) => {
    const counts = Array.from({ length: column === null ? 1 : column.groups.length }, () => new Map());
    for (let row = 0; row < rows.rows; row++) {
      const group = counts[column === null ? 0 : column.codes[row]], key = rows.labels[row] * (rows.size + 1) + decisions[row];
      group.set(key, (group.get(key) ?? 0) + 1);
    }
    return column === null ? counts[0] : counts;
  };

  // Counts of dangerous errors, right decisions and decided rows; the mean cost, in which a referral without a price costs
  // nothing; and for each class its dangerous errors and rows.
  const summarize = ({ size }, counts, { costs, dangerous, refer }) => {
    const sums = { rows: 0, dangerous: 0, right: 0, decided: 0, cost: 0, byClass: costs.map(() => [0, 0]) };
    for (const [key, count] of counts) {
      const label = Math.floor(key / (size + 1)), decision = key % (size + 1);
      const isDecided = decision < size, isRight = decision === label, isDangerous = isDecided && dangerous[label][decision];
      sums.rows += count;
      sums.decided += isDecided ? count : 0;
      sums.right += isRight ? count : 0;
      sums.dangerous += isDangerous ? count : 0;
      sums.cost += count * (isDecided ? (isRight ? 0 : costs[label][decision]) : refer ?? 0);
      sums.byClass[label][0] += isDangerous ? count : 0;
      sums.byClass[label][1] += count;
    }
    return { ...sums, cost: sums.cost / sums.rows };
  };

  // --- Concerns ---------------------------------------------------------------------------------------------------

  // The one cost of errors that are not dangerous, where all dangerous ones cost 1: such a concern lists released pairs.
  const releasedFactor = ({ costs, dangerous, factor }) => {
    const released = new Set();
    for (const [i, row] of costs.entries()) {
      for (const [j, cost] of row.entries()) {
        if (i !== j && dangerous[i][j] && cost !== 1) return null;
        if (i !== j && !dangerous[i][j]) released.add(cost);
      }
    }
    if (released.size === 0) return factor ?? 0.5;
    const [only] = released;
    return released.size === 1 && only > 0 && only <= 1 ? only : null;
  };

  // The arguments of `ConcernSpec` for a state: those of the concern that the page began with, if nothing was changed.
  const plainOf = (state, initial, concern) => {
    const { classes } = concern;
    const isSame = (name) => JSON.stringify(initial[name]) === JSON.stringify(state[name]);
    if (["costs", "dangerous", "refer"].every(isSame)) return concern;
    const kept = {};
    for (const name of ["answers", "class_groups", "concession"]) if (concern[name] !== undefined) kept[name] = concern[name];
    const listed = (matrix) => matrix.flatMap((row, i) => {
      const others = classes.filter((_, j) => j !== i && row[j]);
      return others.length ? [[classes[i], ...others]] : [];
    });
    const price = state.refer === null ? {} : { refer: state.refer };
    const factor = releasedFactor(state);
    if (factor !== null) {
      const releases = listed(state.dangerous.map((row) => row.map((is) => !is)));
      return { classes, releases, factor, ...price, ...kept };
    }
    const isAll = state.costs.every((row, i) => row.every((cost, j) => i === j || cost > 0 === state.dangerous[i][j]));
    const dangerous = isAll ? {} : { dangerous: listed(state.dangerous) };
    return { classes, weights: state.costs, ...dangerous, ...price, ...kept };
  };

  // --- YAML -------------------------------------------------------------------------------------------------------

  const quoted = (text) =>
    JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const scalar = (value) => {
    if (typeof value !== "number") return quoted(value);
    const text = String(value);
    return text.includes("e") && !text.includes(".") ? text.replace("e", ".0e") : text; // 1e-7 is no number in YAML 1.1
  };
  const flow = (value) => {
    if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
    if (value === null || typeof value !== "object") return scalar(value);
    return `{${Object.entries(value).map(([key, each]) => `${quoted(key)}: ${flow(each)}`).join(", ")}}`;
  };
  const isNested = (value) => Array.isArray(value) && value.some(Array.isArray);
  const toYaml = (plain, comment = "") => {
    const lines = comment.split("\n").filter(Boolean).map((line) => `# ${line}`);
    for (const [key, value] of Object.entries(plain)) {
      if (isNested(value)) lines.push(`${key}:`, ...value.map((each) => `  - ${flow(each)}`));
      else lines.push(`${key}: ${flow(value)}`);
    }
    return `${lines.join("\n")}\n`;
  };

  return { boundsOf, countRows, decide, highest, mostProbable, plainOf, readRows, releasedFactor, summarize, toYaml };
})();
