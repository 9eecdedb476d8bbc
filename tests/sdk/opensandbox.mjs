// The real client, the OpenSandbox SDK for JavaScript, against the look-alike: what the SDK does not
// understand there, it would not be in execd either. Run by run.sh beside it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [lookalike, modules] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { ConnectionConfig, Sandbox } = await import(
  pathToFileURL(require.resolve("@alibaba-group/opensandbox")).href
);

const apiKey = "a-key-of-the-test";
const place = mkdtempSync(join(tmpdir(), "sbx-sdk."));

async function start(...options) {
  const child = spawn(lookalike, ["--log", join(place, "log"), "--api-key", apiKey, ...options], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: place, HOME: place },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = (await lines.next()).value;
  const [, , , port] = line.split(" ");
  return { child, domain: `127.0.0.1:${port}` };
}

async function stop(child) {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin.end();
  assert.equal(await ended, 0);
}

function config(domain, more = {}) {
  return new ConnectionConfig({ domain, protocol: "http", apiKey, disableMetrics: true, ...more });
}

const texts = (messages) => messages.map((message) => message.text);

async function commands(sandbox) {
  let ran = await sandbox.commands.run("echo hello; echo; echo 'é<&> \u2028'; printf last");
  assert.equal(ran.exitCode, 0);
  assert.deepEqual(texts(ran.logs.stdout), ["hello", "\n", "é<&> \u2028", "last"]);
  assert.match(ran.id, /^[0-9a-f]{32}$/);
  ran = await sandbox.commands.run("echo out; echo err >&2; exit 3");
  assert.equal(ran.exitCode, 3);
  assert.deepEqual([texts(ran.logs.stdout), texts(ran.logs.stderr)], [["out"], ["err"]]);
  assert.deepEqual(ran.error.traceback, ["exit status 3"]);
  ran = await sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x; echo; seq 20000");
  assert.equal(ran.logs.stdout[0].text.length, 3000000);
  assert.equal(ran.logs.stdout.length, 20001);
  ran = await sandbox.commands.run("echo before; sleep 30", { timeoutSeconds: 1 });
  assert.equal(ran.exitCode, -1);
  assert.deepEqual(ran.error.traceback, ["signal: killed"]);
  ran = await sandbox.commands.run('printf "%s" "$A"; pwd', {
    workingDirectory: place,
    envs: { A: "a\nb " },
  });
  assert.deepEqual(texts(ran.logs.stdout), ["a", "b " + place]);
  await assert.rejects(sandbox.commands.run("true", { workingDirectory: join(place, "nope") }),
    { statusCode: 400 });
}

async function background(sandbox) {
  const ran = await sandbox.commands.run("echo one; exit 5", { background: true });
  let status;
  do status = await sandbox.commands.getCommandStatus(ran.id);
  while (status.running);
  assert.equal(status.exitCode, 5);
  const logs = await sandbox.commands.getBackgroundCommandLogs(ran.id);
  assert.deepEqual([logs.content, logs.cursor], ["one\n", 4]);
}

async function interrupt(sandbox) {
  let id;
  const ran = sandbox.commands.run("echo up; sleep 30", undefined, {
    onInit: (init) => { id = init.id; },
    onStdout: () => sandbox.commands.interrupt(id),
  });
  assert.deepEqual((await ran).error.traceback, ["signal: terminated"]);
}

async function files(sandbox) {
  const path = join(place, "new dir", "ü &+%.txt");
  const missing = join(place, "missing");
  await sandbox.files.writeFiles([{ path, data: "hello world", mode: 640 }]);
  assert.equal(await sandbox.files.readFile(path), "hello world");
  const part = await sandbox.files.readBytes(path, { range: "bytes=2-5" });
  assert.equal(Buffer.from(part).toString(), "llo ");
  const info = (await sandbox.files.getFileInfo([path]))[path];
  assert.deepEqual([info.path, info.type, info.size, info.mode], [path, "file", 11, 640]);
  assert.ok(info.modifiedAt instanceof Date);
  const listed = await sandbox.files.listDirectory({ path: place, depth: 2 });
  assert.ok(listed.some((entry) => entry.path === path));
  const found = await sandbox.files.search({ path: place, pattern: "*.txt" });
  assert.deepEqual(found.map((entry) => entry.path), [path]);
  await sandbox.files.deleteFiles([path, missing]);
  await assert.rejects(sandbox.files.readFile(path), { statusCode: 404 });
  await assert.rejects(sandbox.files.getFileInfo([missing]), { statusCode: 404 });
}

async function life(domain, more) {
  const sandbox = await Sandbox.create({ connectionConfig: config(domain, more), image: "any" });
  await commands(sandbox);
  await background(sandbox);
  await interrupt(sandbox);
  await files(sandbox);
  const before = (await sandbox.getInfo()).expiresAt;
  await sandbox.renew(7200);
  assert.ok((await sandbox.getInfo()).expiresAt > before);
  const again = await Sandbox.connect({
    connectionConfig: config(domain, more),
    sandboxId: sandbox.id,
  });
  assert.equal((await again.commands.run("exit 0")).exitCode, 0);
  await again.close();
  await sandbox.pause();
  assert.equal((await sandbox.getInfo()).status.state, "Paused");
  await sandbox.kill();
  await assert.rejects(sandbox.getInfo(), { statusCode: 404 });
  await sandbox.close();
}

// The endpoint's headers go with every call to execd. (So does the API key, with this client.)
function checkLog(proxied) {
  const requests = readFileSync(join(place, "log"), "utf8").trim().split("\n").map(JSON.parse);
  const execd = requests.filter((request) => request.part === "execd");
  assert.ok(execd.length > 20);
  for (const { target, headers } of execd) {
    const names = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
    assert.equal(names["x-gate"], "open", target);
  }
  assert.equal(requests.some((request) => request.target.includes("/proxy/44772/")), proxied);
  rmSync(join(place, "log"));
}

const fast = ["--grace", "100"];
const inner = [...fast, "--endpoint", "127.0.0.1:{port}/proxy/44772"];
const pieces = [...fast, "--data-prefix", "--split-events", "7000"];
const ways = [
  ["direct", [], {}, false],
  ["through execd's own proxy", inner, {}, true],
  ["through the lifecycle server", fast, { useServerProxy: true }, true],
  ["with data: before each event, in pieces", pieces, {}, false],
];

try {
  for (const [name, options, more, proxied] of ways) {
    const { child, domain } = await start("--endpoint-header", "X-Gate: open", ...options);
    try {
      await life(domain, more);
      const wrong = config(domain, { ...more, apiKey: "wrong" });
      await assert.rejects(Sandbox.create({ connectionConfig: wrong, image: "any" }),
        { statusCode: 401 });
      checkLog(proxied);
    } finally {
      await stop(child);
    }
    console.log(`ok ${name}`);
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
