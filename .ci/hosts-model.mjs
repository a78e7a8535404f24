// A model that follows a script, in the dialects that hosts speak: Anthropic's messages,
// OpenAI's responses and chat completions, Google's generateContent. It makes its calls one
// after another, each in the answer to a request that offers the tool; every other answer is a
// text. Each request is kept, in the order in which they came.
import http from "node:http";

// What it calls: echo of the server fast, by use_tool or in a script. A request holds the
// answer when it holds what the call does not: echo says the word again, behind the call.
export const calls = {
  discover_tool: {tool: "discover_tool", input: {query: ["say it again"]}},
  direct: {tool: "fast__echo", input: {word: "scripted"}, answer: /word.{1,12}scripted[^]*word.{1,12}scripted/},
  lost: {tool: "lost__vanish", input: {}, answer: /outcome unknown: the call may have run[^]{1,30}check whether it took effect/},
  use_tool: {tool: "use_tool", input: {tool_name: "fast/echo", tool_input: {word: "scripted"}}, answer: /word.{1,12}scripted[^]*word.{1,12}scripted/},
  run_script: {tool: "run_script", input: {code: 'const all = await Promise.all(["scr", "ipt"].map(word => tools.fast.echo({word})));\nreturn all.map(a => a.word).join("") + all.length'}, answer: /script2/},
};

// startModel resolves to {url, requests, close}.
export function startModel(steps) {
  const requests = [], left = [...steps];
  const server = http.createServer((req, res) => {
    let text = "";
    req.on("data", piece => { text += piece; });
    req.on("end", () => {
      const body = text.startsWith("{") ? JSON.parse(text) : {};
      const path = req.url.split("?")[0];
      requests.push({at: Date.now(), path, text});
      const dialect = dialects.find(d => d.takes(path));
      if (!dialect) return json(res, {data: []}, path.endsWith("/models") ? 200 : 404);
      const tool = left.length ? dialect.tools(body).find(name => name.endsWith(left[0].tool)) : undefined;
      if (tool) requests.at(-1).called = left.shift();
      dialect.answer(res, body, path, tool, requests.at(-1).called?.input, `call_${requests.length}`);
    });
  });
  return new Promise(resolve => server.listen(0, "127.0.0.1", () => resolve({
    url: `http://127.0.0.1:${server.address().port}`, requests, close: () => server.close(),
  })));
}

function json(res, value, status = 200) {
  res.writeHead(status, {"Content-Type": "application/json"});
  res.end(JSON.stringify(value));
}

function stream(res, events) {
  res.writeHead(200, {"Content-Type": "text/event-stream"});
  res.end(events.map(e => (e.type ? `event: ${e.type}\n` : "") + `data: ${typeof e === "string" ? e : JSON.stringify(e)}\n\n`).join(""));
}

const dialects = [
  {
    takes: path => path.endsWith("/v1/messages"),
    tools: body => (body.tools ?? []).map(t => t.name),
    answer(res, body, path, tool, callee, id) {
      const block = tool ? {type: "tool_use", id, name: tool, input: {}} : {type: "text", text: ""};
      const delta = tool ? {type: "input_json_delta", partial_json: JSON.stringify(callee)} : {type: "text_delta", text: "done"};
      const message = {id: "m", type: "message", role: "assistant", model: body.model, stop_reason: null, usage: {input_tokens: 1, output_tokens: 1}};
      const stop = tool ? "tool_use" : "end_turn";
      if (!body.stream) return json(res, {...message, stop_reason: stop, content: [tool ? {...block, input: callee} : {type: "text", text: "done"}]});
      stream(res, [{type: "message_start", message: {...message, content: []}}, {type: "content_block_start", index: 0, content_block: block},
        {type: "content_block_delta", index: 0, delta}, {type: "content_block_stop", index: 0},
        {type: "message_delta", delta: {stop_reason: stop}, usage: {output_tokens: 1}}, {type: "message_stop"}]);
    },
  },
  {
    takes: path => path.endsWith("/responses"),
    tools: body => (body.tools ?? []).flatMap(t => t.type === "namespace" ? t.tools.map(inner => `${t.name}/${inner.name}`) : [t.name ?? ""]),
    answer(res, body, path, tool, callee, id) {
      const [namespace, name] = tool?.includes("/") ? tool.split("/") : [undefined, tool];
      const item = tool ? {id: "i", type: "function_call", call_id: id, name, namespace, arguments: JSON.stringify(callee), status: "completed"}
        : {id: "i", type: "message", role: "assistant", status: "completed", content: [{type: "output_text", text: "done", annotations: []}]};
      const usage = {input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: {cached_tokens: 0}, output_tokens_details: {reasoning_tokens: 0}};
      stream(res, [{type: "response.created", response: {id: "r"}}, {type: "response.output_item.done", output_index: 0, item},
        {type: "response.completed", response: {id: "r", output: [item], usage}}]);
    },
  },
  {
    takes: path => path.includes("enerateContent"),
    tools: body => (body.tools ?? []).flatMap(t => (t.functionDeclarations ?? []).map(f => f.name)),
    answer(res, body, path, tool, callee) {
      const part = tool ? {functionCall: {name: tool, args: callee}} : {text: "done"};
      const said = {candidates: [{content: {role: "model", parts: [part]}, finishReason: "STOP", index: 0}], usageMetadata: {promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2}};
      if (path.includes("stream")) return stream(res, [said]);
      json(res, said);
    },
  },
  {
    takes: path => path.endsWith("/chat/completions"),
    tools: body => (body.tools ?? []).map(t => t.function?.name ?? ""),
    answer(res, body, path, tool, callee, id) {
      const message = tool ? {role: "assistant", content: null, tool_calls: [{index: 0, id, type: "function", function: {name: tool, arguments: JSON.stringify(callee)}}]}
        : {role: "assistant", content: "done"};
      const chunk = {id: "c", object: "chat.completion.chunk", created: 1, model: body.model};
      const finish_reason = tool ? "tool_calls" : "stop", usage = {prompt_tokens: 1, completion_tokens: 1, total_tokens: 2};
      if (!body.stream) return json(res, {...chunk, object: "chat.completion", choices: [{index: 0, message, finish_reason}], usage});
      stream(res, [{...chunk, choices: [{index: 0, delta: message, finish_reason: null}]}, {...chunk, choices: [{index: 0, delta: {}, finish_reason}], usage}, "[DONE]"]);
    },
  },
];
