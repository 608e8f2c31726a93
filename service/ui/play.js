// Pipelines to play with: known schedules beside one that is sought here, for microbatches that differ. Times in ms.
//
// Stages       stage s of `ranks * chunks` lies on rank s mod ranks. A pass takes its kind's time times its microbatch's
//              size, over `chunks`; a stage's result reaches another rank after `link`.
// Backwards    B takes both halves of a backward; with a split, B takes the part for the inputs and W that for weights.
// Memory       of a rank in microbatches' activations of one whole rank: taken by F, given back by B, or by W.
// Bound        no schedule is shorter than what some rank's first pass waits for, its work, and what follows its last.
'use strict';
const Play = (() => {
  function random(seed) {
    let state = seed >>> 0 || 1;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  // Sizes with mean one; `unequal` 0 to 1 is the spread of their logarithm.
  function sizes({micro, unequal, seed}) {
    const draw = random(seed), all = [];
    for (let m = 0; m < micro; ++m) {
      const normal = Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
      all.push(Math.exp(unequal * normal));
    }
    const mean = all.reduce((a, b) => a + b, 0) / micro;
    return all.map(size => size / mean);
  }

  function problem(setting) {
    const {ranks, micro, chunks, forward, backward, weight, link, split} = setting;
    const size = sizes(setting), stages = ranks * chunks;
    const times = {F: forward / chunks, B: (split ? backward : backward + weight) / chunks, W: weight / chunks};
    return {...setting, stages, size, rankOf: stage => stage % ranks,
            takes: (kind, m) => times[kind] * size[m],
            holds: m => size[m] / chunks, link};
  }

  const id = (p, kind, stage, m) => ({F: 0, B: 1, W: 2}[kind] * p.stages + stage) * p.micro + m;

  // When each pass of the lists runs; null: ranks wait for each other forever.
  function run(p, lists) {
    const done = new Float64Array(3 * p.stages * p.micro).fill(-1), free = new Float64Array(p.ranks);
    const next = new Int32Array(p.ranks), tasks = [];
    const ready = (pass) => {
      const {kind, stage, m} = pass;
      const from = (k, s) => {
        const at = done[id(p, k, s, m)];
        return at < 0 ? -1 : at + (p.rankOf(s) === p.rankOf(stage) ? 0 : p.link);
      };
      if (kind === 'F') return stage === 0 ? 0 : from('F', stage - 1);
      if (kind === 'W') return from('B', stage);
      const own = from('F', stage);
      if (own < 0 || stage === p.stages - 1) return own;
      const after = from('B', stage + 1);
      return after < 0 ? -1 : Math.max(own, after);
    };
    for (let moved = true; moved;) {
      moved = false;
      for (let r = 0; r < p.ranks; ++r)
        while (next[r] < lists[r].length) {
          const pass = lists[r][next[r]], at = ready(pass);
          if (at < 0) break;
          const start = Math.max(at, free[r]), end = start + p.takes(pass.kind, pass.m);
          done[id(p, pass.kind, pass.stage, pass.m)] = free[r] = end;
          tasks.push({rank: r, start, end, kind: pass.kind, stage: pass.stage, micro: pass.m, pass,
                      name: `${pass.kind}${pass.m} of stage ${pass.stage}`});
          ++next[r];
          moved = true;
        }
    }
    return lists.every((list, r) => next[r] === list.length) ? {tasks, end: Math.max(...free)} : null;
  }

  function judged(p, lists) {
    const found = run(p, lists);
    if (!found) return null;
    const work = new Float64Array(p.ranks), held = new Float64Array(p.ranks), peak = new Float64Array(p.ranks);
    const memory = Array.from({length: p.ranks}, () => [[0, 0]]), last = p.split ? 'W' : 'B';
    for (const task of [...found.tasks].sort((a, b) => a.start - b.start || a.end - b.end)) {
      const r = task.rank;
      work[r] += task.end - task.start;
      if (task.kind === 'F') {
        held[r] += p.holds(task.micro);
        memory[r].push([task.start, held[r]]);
      } else if (task.kind === last) {
        held[r] -= p.holds(task.micro);
        memory[r].push([task.end, held[r]]);
      }
      peak[r] = Math.max(peak[r], held[r]);
    }
    const busy = work.reduce((a, b) => a + b, 0);
    return {...found, ranks: p.ranks, memory, lists, peak: Math.max(...peak), bubble: 1 - busy / (p.ranks * found.end)};
  }

  function bound(p) {
    let best = 0;
    for (let r = 0; r < p.ranks; ++r) {
      let work = 0, head = Infinity, tail = Infinity;
      for (let m = 0; m < p.micro; ++m) {
        work += p.chunks * (p.takes('F', m) + p.takes('B', m) + (p.split ? p.takes('W', m) : 0));
        head = Math.min(head, r * (p.takes('F', m) + p.link));
        tail = Math.min(tail, p.split ? 0 : r * (p.takes('B', m) + p.link));
      }
      best = Math.max(best, head + work + tail);
    }
    for (let m = 0; m < p.micro; ++m) {
      const hops = p.ranks > 1 ? 2 * (p.stages - 1) : 0;
      best = Math.max(best, p.stages * (p.takes('F', m) + p.takes('B', m)) + hops * p.link + (p.split ? p.takes('W', m) : 0));
    }
    return best;
  }

  const empty = p => Array.from({length: p.ranks}, () => []);

  // All forwards, then all backwards.
  function gpipe(p) {
    const lists = empty(p), last = [];
    for (let m = 0; m < p.micro; ++m) last.unshift(m);
    for (let r = 0; r < p.ranks; ++r) {
      for (let c = 0; c < p.chunks; ++c) for (let m = 0; m < p.micro; ++m) lists[r].push({kind: 'F', stage: c * p.ranks + r, m});
      for (let c = p.chunks - 1; c >= 0; --c)
        for (const m of last) {
          lists[r].push({kind: 'B', stage: c * p.ranks + r, m});
          if (p.split) lists[r].push({kind: 'W', stage: c * p.ranks + r, m});
        }
    }
    return lists;
  }

  // Megatron's order: warm-up forwards, then one forward and one backward in turn; with chunks, groups of `ranks`
  // microbatches through each chunk (interleaved).
  function oneForwardOneBackward(p) {
    if (p.chunks > 1 && p.micro % p.ranks !== 0) return null;
    const lists = empty(p), total = p.micro * p.chunks;
    const place = (k, backwards) => {
      if (p.chunks === 1) return [0, k];
      const group = Math.floor(k / (p.ranks * p.chunks)), within = k % (p.ranks * p.chunks);
      const c = Math.floor(within / p.ranks);
      return [backwards ? p.chunks - 1 - c : c, group * p.ranks + within % p.ranks];
    };
    for (let r = 0; r < p.ranks; ++r) {
      const warm = p.chunks === 1 ? p.ranks - r - 1 : (p.ranks - r - 1) * 2 + (p.chunks - 1) * p.ranks;
      const forwards = Math.min(total, warm), held = [];
      const add = (kind, k) => {
        const [c, m] = place(k, kind !== 'F');
        lists[r].push({kind, stage: c * p.ranks + r, m});
        if (kind !== 'B' || !p.split) return;
        held.push({kind: 'W', stage: c * p.ranks + r, m});
        if (held.length > r) lists[r].push(held.shift());  // ZB-H1: as many weights wait as the rank's place
      };
      for (let k = 0; k < forwards; ++k) add('F', k);
      for (let k = forwards; k < total; ++k) { add('F', k); add('B', k - forwards); }
      for (let k = total - forwards; k < total; ++k) add('B', k);
      lists[r].push(...held);
    }
    return lists;
  }

  // Runs what is ready, the longest way to the end first, within memory; `shake` is how far priorities are moved.
  function greedy(p, most, draw, shake) {
    const lists = empty(p), free = new Float64Array(p.ranks), held = new Float64Array(p.ranks);
    const moved = Array.from({length: p.micro}, () => 1 + shake * (draw() - 0.5));
    const open = Array.from({length: p.ranks}, () => []), begun = Array.from({length: p.ranks}, () => 0);
    const done = new Float64Array(3 * p.stages * p.micro).fill(-1);
    let left = p.stages * p.micro * (p.split ? 3 : 2);
    const rest = (kind, stage, m) => moved[m] * (kind === 'F' ? (p.stages - stage) * p.takes('F', m) + p.stages * p.takes('B', m)
                                                : kind === 'B' ? (stage + 1) * p.takes('B', m) + 1e6 : 0);
    const choices = Array.from({length: p.ranks}, () => undefined);  // undefined: to be found again
    const add = (kind, stage, m, at) => {
      open[p.rankOf(stage)].push({kind, stage, m, at, rest: rest(kind, stage, m)});
      choices[p.rankOf(stage)] = undefined;
    };
    const choiceOf = r => {
      let choice = null;
      for (const one of open[r]) {
        if (one.kind === 'F' && one.stage < p.ranks && held[r] + p.holds(one.m) * p.chunks > most + 1e-9 && begun[r] > 0) continue;
        const start = Math.max(one.at, free[r]);
        if (!choice || start < choice.start - 1e-9 || (start < choice.start + 1e-9 && one.rest > choice.one.rest)) choice = {one, start, r};
      }
      return choice;
    };
    for (let m = 0; m < p.micro; ++m) add('F', 0, m, 0);
    while (left > 0) {
      let best = null;
      for (let r = 0; r < p.ranks; ++r) {
        const choice = choices[r] === undefined ? (choices[r] = choiceOf(r)) : choices[r];
        if (choice && (!best || choice.start < best.start)) best = choice;
      }
      if (!best) return null;
      const {one, start, r} = best, {kind, stage, m} = one, end = start + p.takes(kind, m);
      open[r].splice(open[r].indexOf(one), 1);
      lists[r].push({kind, stage, m});
      choices[r] = undefined;
      free[r] = done[id(p, kind, stage, m)] = end;
      --left;
      const across = s => end + (p.rankOf(s) === r ? 0 : p.link);
      if (kind === 'F' && stage < p.ranks) { held[r] += p.holds(m) * p.chunks; ++begun[r]; }
      if (kind === (p.split ? 'W' : 'B') && stage < p.ranks) { held[r] -= p.holds(m) * p.chunks; --begun[r]; }
      if (kind === 'F') {
        if (stage + 1 < p.stages) add('F', stage + 1, m, across(stage + 1));
        else add('B', stage, m, end);
      } else if (kind === 'B') {
        if (p.split) add('W', stage, m, end);
        if (stage > 0) add('B', stage - 1, m, Math.max(across(stage - 1), done[id(p, 'F', stage - 1, m)]));
      }
    }
    return lists;
  }

  // The best of some tries, within so many milliseconds; `most`: microbatches' activations that a rank may hold.
  function search(p, most, milliseconds, begin = []) {
    const draw = random(p.seed + 1), until = performance.now() + milliseconds, low = bound(p);
    let best = null, tries = 0;
    const judge = lists => {
      const found = lists && judged(p, lists);
      if (found && found.peak <= most + 1e-9 && (!best || found.end < best.end)) best = found;
    };
    begin.forEach(judge);
    while (tries === 0 || (performance.now() < until && best && best.end > low * (1 + 1e-6))) {
      judge(greedy(p, most, draw, tries === 0 ? 0 : 0.1 * (1 + tries % 5)));
      if (++tries > 5000) break;
    }
    return best;
  }

  return {problem, judged, bound, gpipe, oneForwardOneBackward, search, sizes};
})();
if (typeof module !== 'undefined') module.exports = Play;
