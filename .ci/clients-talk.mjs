// What both versions of the TypeScript SDK do through dynmcp. Their schemas are
// stricter than any check of ours: what they do not like fails here.
import assert from 'node:assert/strict'

// talk lists and calls. conformanceTool is one of the Go SDK's test server that
// asks the client for its name in the middle of a call, in the client's way;
// changed is settled when the client hears that the list of tools has changed.
export async function talk(client, conformanceTool, changed) {
  const ok = (what) => console.log(`ok ${what}`)
  const use = (name, input) => client.callTool({ name: 'use_tool', arguments: { tool_name: name, tool_input: input } })

  const { tools } = await client.listTools()
  assert.deepEqual(tools.map((t) => t.name), ['discover_tool', 'use_tool', 'load_mcp'])
  assert.match(tools[0].description, /everything\/echo/)
  assert.match(tools[0].description, /- sdk: The test server of the Go SDK\./)
  ok('tools/list')

  const details = await client.callTool({ name: 'discover_tool', arguments: { tool_name: 'everything/get-sum' } })
  assert.match(details.content[0].text, /Input Schema:\n.*"a":\{"type":"number"/)
  ok('discover_tool')

  const echo = await use('everything/echo', { message: 'é <&>' })
  assert.deepEqual(echo.content, [{ type: 'text', text: 'Echo: é <&>' }])
  const weather = await use('everything/get-structured-content', { location: 'Chicago' })
  assert.equal(typeof weather.structuredContent.temperature, 'number')
  assert.equal((await use('everything/get-sum', { a: 'x' })).isError, true)
  assert.match((await use('everything/no-such-tool', {})).content[0].text, /everything\//)
  ok('use_tool')

  const steps = []
  await client.callTool(
    { name: 'use_tool', arguments: { tool_name: 'everything/trigger-long-running-operation', tool_input: { duration: 1, steps: 4 } } },
    ...[undefined].slice(client.onlyOptions ? 1 : 0), // 1.x wants a schema in between
    { onprogress: (p) => steps.push(p.progress) }
  )
  // 2.x may drop the last, which comes together with the result; it does so
  // without dynmcp as well.
  assert.deepEqual(steps.slice(0, 3), [1, 2, 3])
  ok('progress')

  const loaded = await client.callTool({ name: 'load_mcp', arguments: { mcp_name: 'sdk' } })
  assert.match(loaded.content[0].text, /^- sdk\/test_simple_text\b/m)
  await changed
  assert.match((await client.listTools()).tools[0].description, /\btest_simple_text\b/)
  ok('load_mcp')

  const named = await use(`sdk/${conformanceTool}`, { message: 'Who are you?' })
  assert.match(JSON.stringify(named.content), /Ada/)
  ok('a question in the middle of a call')

  const { resources } = await client.listResources()
  assert.ok(resources.some((r) => r.uri === 'test://static-text'))
  const text = await client.readResource({ uri: 'test://static-text' })
  assert.equal(text.contents[0].text, 'This is the content of the static text resource.')
  const template = await client.readResource({ uri: 'test://template/7/data' })
  assert.equal(JSON.parse(template.contents[0].text).id, '7')
  await assert.rejects(client.readResource({ uri: 'test://nothing-like-it' }))
  ok('resources')

  const { prompts } = await client.listPrompts()
  assert.ok(prompts.some((p) => p.name === 'test_prompt_with_arguments'))
  const prompt = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'é', arg2: '2' } })
  assert.equal(prompt.messages[0].content.text, "Prompt with arguments: arg1='é', arg2='2'")
  ok('prompts')

  const completion = await client.complete({
    ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'a' } })
  assert.ok(Array.isArray(completion.completion.values))
  ok('completion')
}
