// One command: its words and files in, lines as they come, then its status, answer and files.
'use strict';
importScripts('planner.js');
const tables = new Map();  // of devices, unzipped

async function fetched(name) {
  const response = await fetch(`costdb/${name}.gz`);
  if (!response.ok) throw new Error(`costdb/${name}.gz cannot be loaded`);
  const unzipped = response.body.pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(unzipped).arrayBuffer());
}

function filesBelow(FS, folder, name, all) {
  for (const one of FS.readdir(folder)) {
    if (one === '.' || one === '..') continue;
    const path = `${folder}/${one}`, below = name ? `${name}/${one}` : one;
    if (FS.isDir(FS.stat(path).mode)) filesBelow(FS, path, below, all);
    else all[below] = FS.readFile(path);
  }
  return all;
}

// A process: an instance of its own. {status, out, files, wanted}: a table that it asked for and did not have.
async function ran(words, files) {
  const out = [], wanted = [];
  const planner = await PipeweaverPlanner({
    noInitialRun: true,
    print: line => out.push(line),
    printErr: line => { if (!wanted.length) postMessage({line}); },
    wants: name => wanted.push(name),
  });
  const {FS} = planner;
  for (const folder of ['/costdb', '/files']) FS.mkdir(folder);
  for (const [name, bytes] of tables) FS.writeFile(`/costdb/${name}`, bytes);
  for (const [name, text] of Object.entries(files)) FS.writeFile(`/files/${name}`, text);
  FS.chdir('/files');
  const status = planner.callMain(words);
  const made = FS.analyzePath('/files/out').exists ? filesBelow(FS, '/files/out', '', {}) : {};
  return {status, out: out.join('\n'), files: made, wanted};
}

async function answered(words, files) {
  for (;;) {
    const result = await ran(words, files);
    if (!result.wanted.length) return {status: result.status, out: result.out, files: result.files};
    for (const name of result.wanted) if (!tables.has(name)) tables.set(name, await fetched(name));
  }
}

onmessage = async ({data: {words, files}}) => {
  try { postMessage(await answered(words, files)); } catch (error) { postMessage({failed: error.message}); }
};
