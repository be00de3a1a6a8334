// The wire forms of four model services, as far as a scripted model needs them: which tools a request offers, what the
// tool has answered, and the events of a reply that says or calls something.
const sse = (events) => events.map((event) => `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`).join('');
const USAGE = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

// ---- OpenAI's responses: a tool may stand in a namespace ----

const flat = (tools, namespace) => tools.flatMap((tool) => (tool.tools ? flat(tool.tools, tool.name) : [{ name: tool.name, namespace }]));

function respond(item) {
  return sse([
    { type: 'response.created', response: { id: 'r1' } },
    { type: 'response.output_item.done', item },
    { type: 'response.completed', response: { id: 'r1', usage: USAGE } },
  ]);
}

const responses = {
  matches: (url) => url.includes('/responses'),
  tools: ({ tools = [] }) => flat(tools).filter((tool) => tool.name),
  answers: ({ input }) => input.filter((item) => item.type === 'function_call_output' && item.call_id === 'call-1').map((item) => item.output),
  say: (text) => respond({ type: 'message', id: 'm1', role: 'assistant', content: [{ type: 'output_text', text }] }),
  call: ({ name, namespace }, args) => respond({ type: 'function_call', id: 'f1', call_id: 'call-1', name, namespace, arguments: JSON.stringify(args) }),
};

// ---- Anthropic's messages ----

function blocks(block, delta, reason) {
  return sse([
    { type: 'message_start', message: { id: 'm1', type: 'message', role: 'assistant', model: 'scripted', content: [], stop_reason: null, usage: USAGE } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: USAGE },
    { type: 'message_stop' },
  ]);
}

const contents = (messages) => messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []));

const messages = {
  matches: (url) => url.includes('/messages'),
  tools: ({ tools = [] }) => tools,
  answers: (body) => contents(body.messages).filter((one) => one.type === 'tool_result' && one.tool_use_id === 'call-1').map((one) => one.content),
  say: (text) => blocks({ type: 'text', text: '' }, { type: 'text_delta', text }, 'end_turn'),
  call: ({ name }, args) => blocks({ type: 'tool_use', id: 'call-1', name, input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify(args) }, 'tool_use'),
};

// ---- OpenAI's chat completions, which most others speak ----

function choose(delta, reason) {
  const chunk = (choice) => ({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, ...choice }] });
  return `${sse([chunk({ delta: { role: 'assistant', ...delta }, finish_reason: null }), chunk({ delta: {}, finish_reason: reason })])}data: [DONE]\n\n`;
}

// A tool's message is text there: pictures come in a user's message behind it.
const chat = {
  matches: (url) => url.includes('/chat/completions'),
  tools: ({ tools = [] }) => tools.map((tool) => tool.function),
  answers: (body) => {
    const at = body.messages.findLastIndex((one) => one.tool_calls);
    return at < 0 ? [] : body.messages.slice(at + 1).map((one) => one.content);
  },
  say: (text) => choose({ content: text }, 'stop'),
  call: ({ name }, args) => choose({ tool_calls: [{ index: 0, id: 'call-1', type: 'function', function: { name, arguments: JSON.stringify(args) } }] }, 'tool_calls'),
};

// ---- Gemini ----

const candidate = (part) => sse([{ candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }], usageMetadata: { totalTokenCount: 2 } }]);

function geminiAnswers({ contents: turns }) {
  const parts = turns.flatMap((turn) => turn.parts);
  const at = parts.findIndex((part) => part.functionResponse);
  if (at < 0) return [];
  // Its answer is JSON, but for the parts that stand in it or behind it.
  return parts.slice(at).map((part) => (part.functionResponse ? [JSON.stringify(part.functionResponse.response), part.functionResponse.parts] : part));
}

const gemini = {
  matches: (url) => url.includes('enerateContent'),
  tools: ({ tools = [] }) => tools.flatMap((tool) => tool.functionDeclarations ?? []),
  answers: geminiAnswers,
  say: (text) => candidate({ text }),
  call: ({ name }, args) => candidate({ functionCall: { name, args } }),
};

export const dialects = [responses, messages, chat, gemini];
