// Judges the judge: runs that were changed in one place each must have the verdict that the
// change deserves. Usage: node conformance-compare-test.mjs
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const judge = new URL('conformance-compare.mjs', import.meta.url).pathname
const work = mkdtempSync(join(tmpdir(), 'judge-'))
const stamp = '-2026-01-01T00-00-00-000Z'

// run is a run of three scenarios with all that a check can be.
const run = () => ({
  'tools-list': [['listed', 'SUCCESS'], ['listed', 'SUCCESS'], ['cached', 'WARNING']],
  'tools-call': [['called', 'SUCCESS'], ['noted', 'INFO'], ['refused', 'FAILURE']],
  'dns-rebinding-protection': [['foreign-host', 'SUCCESS']],
})

function write(dir, scenarios) {
  for (const [name, checks] of Object.entries(scenarios)) {
    mkdirSync(join(dir, `server-${name}${stamp}`), { recursive: true })
    writeFileSync(join(dir, `server-${name}${stamp}`, 'checks.json'), JSON.stringify(checks.map(([id, status, errorMessage]) => ({ id, status, errorMessage }))))
  }
}

let wrong = 0
// judged runs the judge on two runs that change changes, and compares its verdict.
function judged(what, want, change, { least = [3, 4], mode } = {}) {
  const dir = mkdtempSync(join(work, 'case-'))
  const [direct, through] = [run(), run()]
  change(direct, through)
  write(join(dir, 'direct'), direct)
  write(join(dir, 'through'), through)
  const { status, stdout, stderr } = spawnSync(process.execPath, [judge, join(dir, 'direct'), join(dir, 'through'), ...least, ...(mode ? [mode] : [])], { encoding: 'utf8' })
  const got = status === 0 ? 'green' : status === 1 && !stderr ? 'red' : `status ${status}`
  if (got === want) return
  wrong++
  console.log(`${what}: the judge says ${got}, want ${want}\n${stdout}${stderr}`)
}
const set = (scenarios, name, at, status) => (scenarios[name][at][1] = status)

judged('nothing changed', 'green', () => {})
judged('a check is lost', 'red', (_, t) => set(t, 'tools-call', 0, 'FAILURE'))
judged('a check becomes a warning', 'red', (_, t) => set(t, 'tools-call', 0, 'WARNING'))
judged('the second of two checks of one name is lost', 'red', (_, t) => set(t, 'tools-list', 1, 'FAILURE'))
judged('a check is not run', 'red', (_, t) => t['tools-call'].shift())
judged('a scenario is not run', 'red', (_, t) => delete t['tools-list'])
judged('a warning becomes a failure', 'red', (_, t) => set(t, 'tools-list', 2, 'FAILURE'))
judged('a warning vanishes', 'red', (_, t) => t['tools-list'].pop())
judged('an INFO vanishes', 'red', (_, t) => t['tools-call'].splice(1, 1))
judged('a failure vanishes', 'red', (_, t) => t['tools-call'].pop())
judged('a status that nobody knows', 'red', (_, t) => set(t, 'tools-call', 0, 'MAYBE'))
judged('a check is gained', 'red', (_, t) => set(t, 'tools-call', 2, 'SUCCESS'))
judged('a check that the first run has not', 'red', (_, t) => t['tools-call'].push(['more', 'SUCCESS']))
judged('a scenario that the first run has not', 'red', (_, t) => (t.more = [['more', 'SUCCESS']]))
judged('the first run has few scenarios', 'red', (d, t) => [d, t].forEach((s) => delete s['tools-list']), { least: [3, 1] })
judged('the first run passes few checks', 'red', (d, t) => [d, t].forEach((s) => set(s, 'tools-list', 0, 'FAILURE')), { least: [3, 4] })
judged('the first run has nothing', 'red', (d, t) => [d, t].forEach((s) => Object.keys(s).forEach((name) => delete s[name])))
judged('the HTTP of the adapter', 'green', (_, t) => set(t, 'dns-rebinding-protection', 0, 'FAILURE'))
judged('the HTTP of the gateway', 'red', (_, t) => set(t, 'dns-rebinding-protection', 0, 'FAILURE'), { mode: 'gateway' })
judged('the HTTP of the gateway, as bad as the other', 'red', (d, t) => [d, t].forEach((s) => set(s, 'dns-rebinding-protection', 0, 'WARNING')), { mode: 'gateway', least: [3, 3] })

judged('the HTTP of the adapter is not run', 'red', (_, t) => delete t['dns-rebinding-protection'])

// Each status of a check that an exception is for: only the expected one is green.
const [unchanged, prompts] = ['tools', 'prompts'].map((kind) => `sep-2575-server-sends-${kind}-list-changed-on-subscription`)
const exceptions = [
  ['gateway', 'server-stateless', unchanged, 'WARNING', ''],
  ['bridged', 'server-stateless', prompts, 'SUCCESS', ''],
  ['bridged', 'input-required-result-basic-elicitation', 'sep-2322-elicitation-incomplete', 'FAILURE', 'inputRequests missing expected key "user_name"'],
  ['bridged', 'input-required-result-basic-elicitation', 'sep-2322-elicitation-complete', 'not run', ''],
  ['bridged', 'input-required-result-ignore-extra-params', 'sep-2322-ignore-unexpected-params', 'WARNING', 'Server did not return complete result'],
  ['bridged', 'input-required-result-multi-round', 'sep-2322-multi-round-r2', 'FAILURE', 'Expected new InputRequiredResult'],
  ['bridged', 'input-required-result-multi-round', 'sep-2322-multi-round-r3', 'not run', ''],
]
for (const [mode, scenario, check, expected, message] of exceptions) {
  const judgedAs = (want, status, text) =>
    judged(`${mode}, ${check} is ${status}: ${text}`, want, (d, t) => {
      d[scenario] = [['other', 'SUCCESS'], [check, 'SUCCESS']]
      t[scenario] = [['other', 'SUCCESS'], ...(status === 'not run' ? [] : [[check, status, text]])]
    }, { mode })
  for (const status of ['SUCCESS', 'WARNING', 'FAILURE', 'INFO', 'not run']) judgedAs(status === expected ? 'green' : 'red', status, message)
  if (message) judgedAs('red', expected, 'another message')
  judged(`${mode}, the scenario of ${check} is not run`, 'red', (d) => (d[scenario] = [['other', 'SUCCESS'], [check, 'SUCCESS']]), { mode })
}

rmSync(work, { recursive: true })
if (wrong > 0) process.exit(1)
console.log('the judge judges as it should')
