"use strict";
// What `mpcs explore` computes: decisions by costs, what they change, and concerns as YAML. Nothing here touches the page.
// Classes are indices, and a decision is a class, or C for a referral. Matrices (C, C) have a row for each true class.
const explorer = (() => {
  const EPSILON = 2 ** -23; // probabilities are float32
  const LEVEL = 0.05; // 1 - confidence of intervals and limits

  // --- Intervals -------------------------------------------------------------------------------------------------

  // The place between two others where a monotone function changes its sign, by secants (Illinois) and bisections.
  const root = (f, low, high, precision) => {
    let atLow = f(low), atHigh = f(high);
    for (let step = 0; step < 200 && Math.abs(high - low) > precision; step++) {
      const secant = (low * atHigh - high * atLow) / (atHigh - atLow);
      const isBetween = secant > Math.min(low, high) && secant < Math.max(low, high);
      const next = isBetween && step % 4 < 3 ? secant : (low + high) / 2;
      const value = f(next);
      if (value === 0) return next;
      if (value > 0 === atHigh > 0) [high, atHigh, atLow] = [next, value, atLow / 2];
      else [low, atLow, atHigh] = [next, value, atHigh / 2];
    }
    return (low + high) / 2;
  };

  const logGamma = (z) => { // Stirling's series, after a step up to where it is exact
    let shift = 0;
    for (; z < 12; z++) shift -= Math.log(z);
    const u = 1 / (z * z);
    const series = (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u / 1188)))) / z;
    return shift + (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + series;
  };

  // The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22).
  const betaInc = (a, b, x) => {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - betaInc(b, a, 1 - x);
    let fraction = 1, c = 1, d = 0;
    for (let step = 0; step < 100000; step++) {
      const m = step >> 1;
      let term = 1;
      if (step > 0 && step % 2 === 0) term = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      if (step % 2 === 1) term = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / (1 + term * d || 1e-300);
      c = 1 + term / c || 1e-300;
      fraction *= c * d;
      if (Math.abs(c * d - 1) < 1e-15) break;
    }
    const front = a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b);
    return (Math.exp(front) * (fraction - 1)) / a;
  };

  const known = new Map();
  // The interval of Clopper and Pearson for k of n independent rows; null without rows.
  const clopperPearson = (k, n) => {
    if (n === 0) return null;
    const key = `${k} ${n}`;
    if (!known.has(key)) {
      const low = k === 0 ? 0 : root((x) => betaInc(k, n - k + 1, x) - LEVEL / 2, 0, k / n, 1e-13);
      const high = k === n ? 1 : root((x) => betaInc(k + 1, n - k, x) - (1 - LEVEL / 2), k / n, 1, 1e-13);
      known.set(key, [low, high]);
    }
    return known.get(key);
  };

  // The most errors among n rows by which the exact binomial test shows a rate of at most atMost; -1 if none would.
  const mostErrors = (n, atMost, level) => {
    let low = -1, high = n;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (1 - betaInc(middle + 1, n - middle, atMost) <= level * (1 + 1e-12)) low = middle;
      else high = middle;
    }
    return low;
  };

  // A straight measure of probabilities: about the quantile of the normal distribution (Abramowitz, Stegun 26.2.23).
  const probit = (p) => {
    const t = Math.sqrt(-2 * Math.log(Math.min(p, 1 - p)));
    const value = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    return p < 0.5 ? -value : value;
  };

  const NODES = Array.from({ length: 100 }, (_, place) => Math.sinh(0.08 * place));
  // The probability that a sum of gamma variables with these shapes, times these values, is above 0: an integral along a
  // contour through its saddle point, as in `bounded_mean_interval` of the package.
  const probabilityAbove0 = (values, shapes) => {
    const most = Math.max(...values), least = Math.min(...values);
    if (most <= 0 || least >= 0) return most <= 0 ? 0 : 1;
    const isMirrored = values.reduce((sum, value, k) => sum + value * shapes[k], 0) > 0;
    const size = (isMirrored ? -1 : 1) * Math.max(most, -least);
    const a = values.map((value) => value / size);
    const top = Math.max(...a);
    let low = 1e-9 / top, high = 1 / top, saddle = low;
    for (let step = 0; step < 9; step++) {
      saddle = Math.sqrt(low * high);
      const slope = a.reduce((sum, value, k) => sum + (shapes[k] * value) / (1 - value * saddle), 0);
      if (slope > 1 / saddle) high = saddle;
      else low = saddle;
    }
    const curvature = a.reduce((sum, value, k) => sum + shapes[k] * (value / (1 - value * saddle)) ** 2, saddle ** -2);
    const scale = curvature ** -0.5;
    let upper = 0;
    for (const [place, node] of NODES.entries()) {
      const height = scale * node;
      let logSize = 0, angle = 0;
      for (let k = 0; k < a.length; k++) {
        const x = 1 - saddle * a[k], y = -height * a[k];
        logSize -= shapes[k] * 0.5 * Math.log(x * x + y * y);
        angle -= shapes[k] * Math.atan2(y, x);
      }
      if (logSize < -700) break;
      const real = Math.exp(logSize) * (Math.cos(angle) * saddle + Math.sin(angle) * height);
      const part = (real / (saddle * saddle + height * height)) * scale * Math.sqrt(1 + node * node);
      upper += place === 0 ? part / 2 : part;
    }
    upper *= 0.08 / Math.PI;
    return Math.min(Math.max(isMirrored ? 1 - upper : upper, 0), 1);
  };

  const upperEnd = (bins, possible) => {
    const rows = bins.reduce((sum, [, per, count]) => sum + per * count, 0);
    const mean = bins.reduce((sum, [value, , count]) => sum + value * count, 0) / rows;
    const wanted = probit(LEVEL / 2);
    const surplus = (v) => {
      const values = bins.map(([value, per]) => value - v * per);
      const largest = Math.max(...values, ...possible.map(([value, per]) => value - v * per));
      const probability = probabilityAbove0([...values, largest], [...bins.map(([, , count]) => count), 1]);
      return probit(Math.min(Math.max(probability, 1e-15), 1 - 1e-15)) - wanted;
    };
    if (surplus(mean) <= 0) return mean;
    const rest = bins.map(([value, per, count]) => [value - mean * per, count]);
    const spread = Math.sqrt(rest.reduce((sum, [value, count]) => sum + count * value * value, 0));
    const ends = [...rest.map(([value]) => value), ...possible.map(([value, per]) => value - mean * per)];
    let low = mean, step = (-1.2 * wanted * (spread + Math.max(...ends) - Math.min(...ends))) / rows;
    while (surplus(low + step) > 0) [low, step] = [low + step, 2 * step];
    return root(surplus, low, low + step, 1e-6 * (low + step - mean));
  };

  // Gaffke's interval of a mean, or of a ratio of means, of bins [value, per, count], given the possible [value, per].
  const meanInterval = (bins, possible) => {
    const there = bins.filter(([, , count]) => count > 0);
    if (!there.some(([, per]) => per > 0)) return null;
    const negated = (pairs) => pairs.map(([value, ...others]) => [-value, ...others]);
    return [-upperEnd(negated(there), negated(possible)), upperEnd(there, possible)];
  };

  // --- Decisions -------------------------------------------------------------------------------------------------

  const toArray = (text, Type) => {
    const bytes = atob(text), array = new Uint8Array(bytes.length);
    for (let place = 0; place < bytes.length; place++) array[place] = bytes.charCodeAt(place);
    return new Type(array.buffer);
  };

  // The rows of a page: probabilities of each model, labels, and the groups of each column.
  const readRows = (data) => {
    const labels = toArray(data.labels, Uint32Array), size = data.classes.length;
    const counts = new Float64Array(size);
    for (const label of labels) counts[label]++;
    return {
      classes: data.classes, labels, counts, size, rows: labels.length,
      models: data.models.map(({ name, probs }) => ({ name, probs: toArray(probs, Float32Array) })),
      columns: data.columns.map(({ name, groups, codes }) => ({ name, groups, codes: toArray(codes, Uint32Array) })),
    };
  };

  const highest = (costs) => Math.max(...costs.map((row) => Math.max(...row)));

  // The probabilities of a row under other class frequencies, given their ratio to those of the file.
  const shifted = (probs, at, ratio, out) => {
    let total = 0;
    for (let i = 0; i < out.length; i++) total += out[i] = probs[at + i] * (ratio === null ? 1 : ratio[i]);
    if (ratio === null) return;
    const all = total > 0 ? total : ratio.reduce((sum, each) => sum + each, 0);
    for (let i = 0; i < out.length; i++) out[i] = (total > 0 ? out[i] : ratio[i]) / all;
  };

  // The decisions with the minimum expected cost, a referral among them unless its cost is null.
  const decide = (rows, model, costs, refer, ratio) => {
    const { size } = rows, columns = size + (refer === null ? 0 : 1);
    const flat = new Float64Array(size * columns), most = Math.max(highest(costs), refer ?? 0, Number.MIN_VALUE);
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) flat[i * columns + j] = i === j ? 0 : costs[i][j] / most;
      if (refer !== null) flat[i * columns + size] = refer / most;
    }
    const rounding = 16 * EPSILON * Math.sqrt(size);
    const decisions = new Int32Array(rows.rows), probs = new Float64Array(size), expected = new Float64Array(columns);
    for (let row = 0; row < rows.rows; row++) {
      shifted(model.probs, row * size, ratio, probs);
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

  // Refer the rows whose estimated risk is not below the highest threshold that the exact binomial test allows.
  const keepLimit = (rows, model, decisions, dangerous, { of, atMost, level }, ratio) => {
    const { size } = rows, probs = new Float64Array(size), risks = new Float32Array(rows.rows).fill(Infinity);
    const counted = [], errors = [];
    let n = 0;
    for (let row = 0; row < rows.rows; row++) {
      const decision = decisions[row], label = rows.labels[row];
      if (of === null || label === of) n++;
      if (decision === size) continue;
      shifted(model.probs, row * size, ratio, probs);
      let risk = 0;
      if (of === null) for (let i = 0; i < size; i++) risk += dangerous[i][decision] ? probs[i] : 0;
      else risk = dangerous[of][decision] ? probs[of] : 0;
      risks[row] = risk;
      if (of !== null && label !== of) continue;
      counted.push(risks[row]);
      if (dangerous[label][decision]) errors.push(risks[row]);
    }
    const most = mostErrors(n, atMost, level);
    let threshold = Infinity;
    if (most < 0) threshold = -Infinity;
    else if (errors.length > most) {
      // The end of the step below that of the first error too many. Risks that differ by rounding are one step.
      const first = errors.sort((a, b) => a - b)[most];
      const sorted = Float32Array.from(counted).sort();
      let place = sorted.indexOf(first);
      while (place > 0 && !(sorted[place] - sorted[place - 1] > 64 * EPSILON * sorted[place])) place--;
      threshold = place > 0 ? Math.fround((sorted[place] + sorted[place - 1]) / 2) : -Infinity;
    }
    return risks.map((risk, row) => (decisions[row] !== size && !(risk < threshold) ? 1 : 0));
  };

  // A state with frequencies that sum to 1, and the limits that hold at them.
  const inUse = (state) => {
    const total = state.priors === null ? 1 : state.priors.reduce((sum, each) => sum + each, 0);
    const priors = state.priors === null ? null : state.priors.map((each) => each / total);
    return { ...state, priors, limits: state.limits.filter(({ of }) => of !== null || priors === null) };
  };

  // The decisions of a model in a state in use: by its costs, and referred to keep its limits.
  const decisionsOf = (rows, model, state) => {
    const ratio = ratioOf(rows, state.priors);
    const decisions = decide(rows, model, state.costs, state.refer, ratio);
    const level = LEVEL / state.limits.length;
    const referred = state.limits.map((limit) => keepLimit(rows, model, decisions, state.dangerous, { ...limit, level }, ratio));
    for (const of of referred) for (let row = 0; row < rows.rows; row++) if (of[row]) decisions[row] = rows.size;
    return decisions;
  };

  // New frequencies by those of the file; a class without rows cannot have any.
  const ratioOf = (rows, priors) =>
    priors === null ? null : priors.map((prior, i) => (rows.counts[i] ? (prior * rows.rows) / rows.counts[i] : 0));

  const mostProbable = (rows, model) => {
    const { size } = rows, decisions = new Int32Array(rows.rows);
    for (let row = 0; row < rows.rows; row++) {
      let best = 0;
      for (let j = 1; j < size; j++) if (model.probs[row * size + j] > model.probs[row * size + best]) best = j;
      decisions[row] = best;
    }
    return decisions;
  };

  // --- What decisions do ------------------------------------------------------------------------------------------

  // How many rows have each true class, decision, and decision to compare with: a list for each group of a column, or one
  // for all rows without a column.
  const countRows = (rows, decisions, others, column = null) => {
    const width = rows.size + 1, kinds = rows.size * width * width, groups = column === null ? 1 : column.groups.length;
    const counts = kinds * groups <= 1e7 ? new Uint32Array(kinds * groups) : new Map();
    for (let row = 0; row < rows.rows; row++) {
      const key = (rows.labels[row] * width + decisions[row]) * width + others[row];
      const place = column === null ? key : column.codes[row] * kinds + key;
      if (counts instanceof Map) counts.set(place, (counts.get(place) ?? 0) + 1);
      else counts[place]++;
    }
    const cells = Array.from({ length: groups }, () => []);
    for (const [place, count] of counts.entries()) {
      if (!count) continue;
      const key = place % kinds, other = key % width, rest = (key - other) / width;
      cells[(place - key) / kinds].push({ label: Math.floor(rest / width), decision: rest % width, other, count });
    }
    return column === null ? cells[0] : cells;
  };

  // The values of a row with a decision, by name. Costs count a referral without a price as nothing.
  const measures = (size, { costs, dangerous, refer }) => ({
    dangerous: (label, decision) => (decision < size && dangerous[label][decision] ? 1 : 0),
    accuracy: (label, decision) => (decision === label ? 1 : 0),
    coverage: (label, decision) => (decision < size ? 1 : 0),
    cost: (label, decision) => (decision === size ? refer ?? 0 : decision === label ? 0 : costs[label][decision]),
  });

  const MEASURES = ["dangerous", "accuracy", "coverage", "cost"];
  // The mean of each measure and its change against the other decisions, at the frequencies of the state; with intervals
  // of those that are named. Of dangerous errors also by class: [errors, rows, interval].
  const summarize = (rows, cells, state, sure = MEASURES) => {
    const { size } = rows, ofClass = new Float64Array(size);
    for (const { label, count } of cells) ofClass[label] += count;
    const total = ofClass.reduce((sum, count) => sum + count, 0);
    const weights = Array.from(ofClass, (count, i) =>
      state.priors === null ? 1 : count ? (state.priors[i] * total) / count : state.priors[i] ? NaN : 0);
    const isWhole = state.priors === null, most = Math.max(highest(state.costs), state.refer ?? 0);
    const means = {}, changes = {};
    const meanOf = (value, low, high, isRate, hasInterval) => {
      const bins = new Map();
      let sum = 0, per = 0;
      for (const cell of cells) {
        const amount = value(cell), weight = weights[cell.label];
        sum += weight * amount * cell.count;
        per += weight * cell.count;
        const key = isWhole ? amount : `${cell.label} ${amount}`;
        const bin = bins.get(key) ?? [weight * amount, weight, 0];
        bin[2] += cell.count;
        bins.set(key, bin);
      }
      // A class that the deployment has but these rows lack leaves the mean unknown.
      const isKnown = weights.every((weight) => !Number.isNaN(weight)) && total > 0;
      if (!isKnown) return { value: NaN, interval: null };
      const used = [...bins.values()];
      let interval = null;
      if (hasInterval && isWhole && isRate) interval = clopperPearson(Math.round(sum), total);
      else if (hasInterval) {
        const possible = (isWhole ? [1] : weights).flatMap((weight) => [[weight * low, weight], [weight * high, weight]]);
        interval = meanInterval(used, possible);
        if (interval) interval = [Math.max(interval[0], low), Math.min(interval[1], high)];
      }
      return { value: sum / per, interval };
    };
    for (const [name, measure] of Object.entries(measures(size, state))) {
      const top = name === "cost" ? most : 1, isSure = sure.includes(name);
      means[name] = meanOf((cell) => measure(cell.label, cell.decision), 0, top, name !== "cost", isSure);
      const change = (cell) => measure(cell.label, cell.decision) - measure(cell.label, cell.other);
      changes[name] = meanOf(change, -top, top, false, isSure);
    }
    const { dangerous } = measures(size, state);
    const byClass = Array.from(ofClass, (count, i) => {
      const errors = cells.reduce((sum, cell) => sum + (cell.label === i ? dangerous(i, cell.decision) * cell.count : 0), 0);
      return [errors, count, clopperPearson(errors, count)];
    });
    return { rows: total, means, changes, byClass };
  };

  // The harm of errors, at most 1, and the costs by which a factor between 0 and 1 decides.
  const harmOf = ({ costs, dangerous }) => {
    const factor = releasedFactor({ costs, dangerous }), most = highest(costs);
    return costs.map((row, i) => row.map((cost, j) => (factor === null ? cost / most : dangerous[i][j] ? 1 : 0)));
  };
  const softened = (harm, factor) =>
    harm.map((row, i) => row.map((each, j) => (i === j ? 0 : factor + (1 - factor) * each)));

  // Accuracy and the rate of dangerous errors, where harmless errors cost a factor of the worst one: [danger, accuracy].
  const frontierPoint = (rows, model, state, factor) => {
    const costs = softened(harmOf(state), factor);
    const decisions = decide(rows, model, costs, null, ratioOf(rows, state.priors));
    const { means } = summarize(rows, countRows(rows, decisions, decisions), state, []);
    return [means.dangerous.value, means.accuracy.value];
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

  class ConcernProblem extends Error {}
  const refuse = (problem) => { throw new ConcernProblem(problem); };
  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  const pairsOf = (field, lists, classes) => {
    if (!Array.isArray(lists)) refuse(`${field} must be a list of lists [true, predicted, ...]`);
    return lists.flatMap((list) => {
      if (!Array.isArray(list) || list.length < 2) refuse(`${field} must hold lists [true, predicted, ...]`);
      const places = list.map((entry) => (typeof entry === "number" ? entry : classes.indexOf(entry)));
      const wrong = places.findIndex((place) => !(place in classes));
      if (wrong >= 0) refuse(`${field} names ${JSON.stringify(list[wrong])}, which is not a class`);
      if (places.indexOf(places[0], 1) > 0) refuse(`${field} must not name ${JSON.stringify(list[0])} for itself`);
      return places.slice(1).map((place) => [places[0], place]);
    });
  };

  // Costs and dangerous pairs of a plain concern, as `ConcernSpec` gives them.
  const stateOf = (plain, classes) => {
    const names = typeof plain.classes === "number" ? Array.from({ length: plain.classes }, (_, i) => String(i)) : plain.classes;
    if (JSON.stringify(names) !== JSON.stringify(classes)) refuse(`classes must be ${classes.join(", ")}, in this order`);
    const unknown = Object.keys(plain).find((key) => !FIELDS.includes(key));
    if (unknown !== undefined) refuse(`${unknown} must be one of ${FIELDS.join(", ")}`);
    const factor = plain.factor ?? 0.5;
    if (!isNumber(factor) || factor <= 0 || factor > 1) refuse("factor must be above 0 and at most 1");
    const matrix = (value) => classes.map(() => classes.map(() => value));
    const costs = matrix(1), dangerous = matrix(true);
    const { weights, releases = [], dangerous: listed, concession, answers } = plain;
    if (releases.length && (weights !== undefined || listed !== undefined)) {
      refuse("releases cannot be combined with weights or dangerous");
    }
    if (listed !== undefined && !Array.isArray(listed) && !(isNumber(listed) && listed > 0 && weights !== undefined)) {
      refuse("dangerous must be a list of pairs, or with weights a weight above 0");
    }
    if (concession !== undefined && !(isNumber(concession) && concession >= 2e-9 && concession < 0.5)) {
      refuse("concession must be a number from 2e-9 to below 0.5");
    }
    const isMapping = answers !== null && typeof answers === "object" && !Array.isArray(answers);
    if (answers !== undefined && !(isMapping && plain.refer !== undefined && Object.values(answers).every(isNumber))) {
      refuse("answers must map answers to costs, beside the cost of a referral (refer)");
    }
    if (weights !== undefined) {
      const isMatrix = Array.isArray(weights) && weights.length === classes.length
        && weights.every((row, i) => Array.isArray(row) && row.length === classes.length
          && row.every((weight, j) => isNumber(weight) && (i === j || weight >= 0)));
      if (!isMatrix) refuse(`weights must be ${classes.length} rows of ${classes.length} numbers of at least 0`);
      weights.forEach((row, i) => row.forEach((weight, j) => {
        costs[i][j] = weight;
        dangerous[i][j] = typeof listed === "number" ? weight >= listed : weight > 0;
      }));
    }
    for (const [i, j] of pairsOf("releases", releases, classes)) [costs[i][j], dangerous[i][j]] = [factor, false];
    if (Array.isArray(listed)) {
      for (const row of dangerous) row.fill(false);
      for (const [i, j] of pairsOf("dangerous", listed, classes)) dangerous[i][j] = true;
      if (weights === undefined) costs.forEach((row, i) => row.forEach((_, j) => (costs[i][j] = dangerous[i][j] ? 1 : factor)));
    }
    for (let i = 0; i < classes.length; i++) [costs[i][i], dangerous[i][i]] = [0, false];
    if (costs.some((row, i) => row.some((cost, j) => cost === 0 && dangerous[i][j]))) {
      refuse("a dangerous error must have a weight above 0");
    }
    if (listed !== undefined && !dangerous.some((row) => row.some(Boolean))) refuse("dangerous must leave an error dangerous");
    if (!(highest(costs) > 0)) refuse("weights must have one above 0");
    const refer = plain.refer ?? null;
    if (Array.isArray(refer)) refuse("refer must be one cost for all classes here");
    if (refer !== null && !(isNumber(refer) && refer >= 0)) refuse("refer must be a finite cost of at least 0");
    return { costs, dangerous, refer, factor };
  };

  const FIELDS = ["classes", "releases", "factor", "weights", "dangerous", "refer", "concession", "answers"];

  // The arguments of `ConcernSpec` for a state: those of its source, if nothing was changed.
  const plainOf = (state, classes) => {
    const { source } = state;
    const kept = {};
    for (const name of ["answers", "concession"]) if (source?.[name] !== undefined) kept[name] = source[name];
    if (source !== null) {
      const before = stateOf({ ...source }, classes);
      const same = (name) => JSON.stringify(before[name]) === JSON.stringify(state[name]);
      if (["costs", "dangerous", "refer"].every(same)) return source;
    }
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

  const plainScalar = (text) => {
    // As PyYAML: a float has a point, and an exponent a sign.
    if (/^[-+]?(0|[1-9][\d_]*|\d[\d_]*\.[\d_]*([eE][-+]\d+)?|\.\d[\d_]*([eE][-+]\d+)?)$/.test(text)) return Number(text.replaceAll("_", ""));
    if (/^[-+]?[\d.]/.test(text)) refuse(`${text.slice(0, 20)} is no plain number: write it like 0.5 or 1.0e-3, or a name in quotes`);
    if (/^(y|yes|no|n|on|off|true|false)$/i.test(text)) refuse(`${text} must be in quotes to be a name`);
    if (/^[&*!|>%@`]/.test(text)) refuse(`${text.slice(0, 20)}: this page cannot read anchors, tags and blocks of text`);
    return /^(~|null|)$/i.test(text) ? null : text;
  };

  // Reads a flow value such as [a, "b"] or {a: 1} from a place of a text, to where a plain scalar must end.
  const readFlow = (text, start, isInside, depth = 0) => {
    let at = start;
    if (depth > 50) refuse("brackets are nested too deeply");
    const skip = () => { while (at < text.length && /\s/.test(text[at])) at++; };
    const value = () => {
      skip();
      if (text[at] === "[" || text[at] === "{") {
        const isList = text[at] === "[", end = isList ? "]" : "}", list = [], mapping = {};
        for (at++; ; ) {
          skip();
          if (at >= text.length) refuse(`a bracket has no ${end}`);
          if (text[at] === end) { at++; return isList ? list : mapping; }
          const [next, rest] = readFlow(text, at, true, depth + 1);
          at = rest;
          skip();
          if (!isList) {
            if (text[at] !== ":") refuse("a mapping needs a colon after each key");
            const [of, after] = readFlow(text, at + 1, true, depth + 1);
            Object.defineProperty(mapping, String(next), { value: of, enumerable: true, configurable: true, writable: true });
            at = after;
            skip();
          } else list.push(next);
          if (text[at] === ",") at++;
          else if (text[at] !== end) refuse(`a comma or ${end} must follow ${JSON.stringify(next)}`);
        }
      }
      if (text[at] === '"') {
        const found = /^"(?:[^"\\]|\\.)*"/s.exec(text.slice(at));
        if (!found) refuse("a quote has no end");
        at += found[0].length;
        try { return JSON.parse(found[0].replace(/\\x([0-9a-fA-F]{2})/g, "\\u00$1").replace(/\s*\n\s*/g, " ")); }
        catch { return refuse(`${found[0].slice(0, 40)} has an escape that this page cannot read`); }
      }
      if (text[at] === "'") {
        const found = /^'(?:[^']|'')*'/s.exec(text.slice(at));
        if (!found) refuse("a quote has no end");
        at += found[0].length;
        return found[0].slice(1, -1).replaceAll("''", "'").replace(/\s*\n\s*/g, " ");
      }
      const found = (isInside ? /^(?:[^,[\]{}:\n]|:(?=\S))*/ : /^(?:[^:\n]|:(?=\S))*/).exec(text.slice(at));
      at += found[0].length;
      return plainScalar(found[0].trim());
    };
    return [value(), at];
  };

  // Lines without comments, with their indentation; lines of an open bracket or quote are joined.
  const logicalLines = (text) => {
    const lines = [];
    let open = 0, quote = "";
    for (const raw of text.replace(/^\ufeff/, "").split(/\r\n|[\r\n]/)) {
      if (raw.startsWith("%") || /^\t/.test(raw)) refuse("a line must not begin with a tab or %");
      const wasOpen = open > 0 || quote !== "";
      let end = raw.length;
      for (let at = 0; at < raw.length; at++) {
        const letter = raw[at];
        if (quote) {
          if (letter === "\\" && quote === '"') at++;
          else if (letter === quote) quote = "";
        } else if (letter === "#" && (at === 0 || /\s/.test(raw[at - 1]))) { end = at; break; }
        else if ((letter === '"' || letter === "'") && /^$|[\s,:[{-]/.test(raw[at - 1] ?? "")) quote = letter;
        else if ("[{".includes(letter)) open++;
        else if ("]}".includes(letter)) open--;
      }
      const content = raw.slice(0, end).trimEnd();
      if (wasOpen) lines[lines.length - 1].text += `\n${content.trim()}`;
      else if (/^(---|\.\.\.)/.test(content)) {
        if (lines.length && content.startsWith("---")) refuse("the file must hold one document");
      } else if (content.trim()) {
        lines.push({ indent: content.length - content.trimStart().length, text: content.trimStart() });
      }
    }
    return lines;
  };

  // Reads YAML of the kinds that concerns are written in: mappings, lists in blocks or brackets, names and numbers.
  const fromYaml = (text) => {
    if (text.length > 10_000_000) refuse("the file must have at most 10 MB");
    const lines = logicalLines(text);
    let at = 0;
    const whole = (part) => {
      const [value, end] = readFlow(part, 0, false);
      if (part.slice(end).trim()) refuse(`${JSON.stringify(part.slice(0, 40))} cannot be read by this page`);
      return value;
    };
    const block = (indent, depth) => {
      if (depth > 50) refuse("nested too deeply");
      const { text: first } = lines[at];
      if (first.startsWith("{") && depth === 0) return whole(lines[at++].text);
      if (first === "-" || first.startsWith("- ")) {
        const list = [];
        while (at < lines.length && lines[at].indent === indent && /^-( |$)/.test(lines[at].text)) {
          const rest = lines[at].text.slice(1), inner = rest.trimStart();
          if (inner && /^-( |$)/.test(inner)) { // a list that begins on the line of its dash
            lines[at] = { indent: indent + 1 + rest.length - inner.length, text: inner };
            list.push(block(lines[at].indent, depth + 1));
          } else if (inner) { at++; list.push(whole(inner)); }
          else { at++; list.push(at < lines.length && lines[at].indent > indent ? block(lines[at].indent, depth + 1) : null); }
        }
        return list;
      }
      const mapping = {};
      while (at < lines.length && lines[at].indent === indent && !/^-( |$)/.test(lines[at].text)) {
        const line = lines[at].text, [key, end] = readFlow(line, 0, false);
        if (line[end] !== ":") refuse(`${JSON.stringify(line.slice(0, 40))} has no colon after a key`);
        if (Object.hasOwn(mapping, String(key))) refuse(`${key} appears twice`);
        const rest = line.slice(end + 1).trim();
        at++;
        const next = lines[at], isList = next && next.indent === indent && /^-( |$)/.test(next.text);
        let value = null;
        if (rest) value = whole(rest);
        else if (next && (next.indent > indent || isList)) value = block(next.indent, depth + 1);
        Object.defineProperty(mapping, String(key), { value, enumerable: true, configurable: true, writable: true });
      }
      return mapping;
    };
    const value = lines.length ? block(lines[0].indent, 0) : null;
    if (at < lines.length) refuse(`${JSON.stringify(lines[at].text.slice(0, 40))}: the indentation does not fit`);
    if (value === null || Array.isArray(value)) refuse(`must be a mapping with the keys ${FIELDS.join(", ")}`);
    return value;
  };

  return {
    ConcernProblem, betaInc, clopperPearson, countRows, decide, decisionsOf, frontierPoint, fromYaml, harmOf, highest, inUse,
    meanInterval, mostErrors, mostProbable, plainOf, readRows, releasedFactor, stateOf, summarize, toYaml,
  };
})();
