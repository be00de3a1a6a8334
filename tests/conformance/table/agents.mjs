// Agent frameworks with a scripted model: it calls the tool that it is told to, and what it reads next is what counts.
// Members that a framework gives its model as JSON are one text here, as they are for the model.
const HEADERS = (token) => ({ Authorization: `Bearer ${token}` });
const ASK = 'Go on.';
const NO_PROGRESS = 'asks for none';

// A session around ask({toolName, args, signal, onProgress}), which resolves to what the model read after the call.
function session(names, ask, close) {
  const nameOf = (name) => names.find((one) => one === name) ?? names.find((one) => one.endsWith(name));
  const call = async (name, args, more = {}) => {
    const read = await ask({ toolName: nameOf(name), args, ...more });
    if (!read) throw new Error('the model read no answer');
    return read;
  };
  return { list: async () => names, call, close };
}

const asText = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

// The models of the AI SDK, Mastra's too: the parts of the tools' answers that the second turn's prompt holds.
const answersOf = (prompt) => prompt.filter((message) => message.role === 'tool').flatMap((message) => message.content).map(
  ({ output }) => (output.type === 'content' ? output.value : asText(output.value)));

// ---- AI SDK ----

const USAGE = { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };

function scriptedAiModel(MockLanguageModel, { toolName, args }, read) {
  return new MockLanguageModel({
    doGenerate: async ({ prompt }) => {
      const answers = answersOf(prompt);
      if (answers.length) {
        read(answers);
        return { content: [{ type: 'text', text: 'Done.' }], finishReason: { unified: 'stop' }, usage: USAGE, warnings: [] };
      }
      return {
        content: [{ type: 'tool-call', toolCallId: 'call-1', toolName, input: JSON.stringify(args) }],
        finishReason: { unified: 'tool-calls' }, usage: USAGE, warnings: [],
      };
    },
  });
}

async function openAiSdk({ load, command, env, url, token }) {
  const { createMCPClient } = await load('@ai-sdk/mcp');
  const { Experimental_StdioMCPTransport: Stdio } = await load('@ai-sdk/mcp/mcp-stdio');
  const { generateText, stepCountIs } = await load('ai');
  const { MockLanguageModelV4 } = await load('ai/test');
  const client = await createMCPClient({
    transport: command ? new Stdio({ command: command[0], args: command.slice(1), env, stderr: 'ignore' })
      : { type: 'http', url, headers: HEADERS(token) },
  });
  const tools = await client.tools();
  const ask = async (script) => {
    let seen;
    const model = scriptedAiModel(MockLanguageModelV4, script, (answers) => { seen = answers; });
    await generateText({ model, tools, prompt: ASK, stopWhen: stepCountIs(2), abortSignal: script.signal, maxRetries: 0 });
    return seen;
  };
  return session(Object.keys(tools), ask, () => client.close());
}

// ---- OpenAI's Agents SDK ----

async function openAgents({ load, command, env, url, token }) {
  const { Agent, MCPServerStdio, MCPServerStreamableHttp, Runner, Usage } = await load('@openai/agents');
  const server = command ? new MCPServerStdio({ command: command[0], args: command.slice(1), env })
    : new MCPServerStreamableHttp({ url, requestInit: { headers: HEADERS(token) } });
  await server.connect();
  const runner = new Runner({ tracingDisabled: true });
  const ask = async ({ toolName, args, signal }) => {
    let seen;
    const text = { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Done.' }] };
    const call = { type: 'function_call', callId: 'call-1', name: toolName, arguments: JSON.stringify(args), status: 'completed' };
    const getResponse = async ({ input }) => {
      const answers = typeof input === 'string' ? [] : input.filter((item) => item.type === 'function_call_result');
      if (answers.length) seen = answers.map((one) => one.output);
      return { usage: new Usage(), output: [answers.length ? text : call] };
    };
    const agent = new Agent({ name: 'tester', instructions: 'Test.', model: { getResponse }, mcpServers: [server] });
    await runner.run(agent, ASK, { signal, maxTurns: 3 });
    return seen;
  };
  return session((await server.listTools()).map((one) => one.name), ask, () => server.close());
}

// ---- LangChain ----

async function openLangChain({ load, command, env, url, token }) {
  const { MultiServerMCPClient } = await load('@langchain/mcp-adapters');
  const { createAgent } = await load('langchain');
  const { BaseChatModel } = await load('@langchain/core/language_models/chat_models');
  const { AIMessage } = await load('@langchain/core/messages');
  let tell;
  const client = new MultiServerMCPClient({
    mcpServers: {
      sandbox: command ? { transport: 'stdio', command: command[0], args: command.slice(1), env, stderr: 'ignore' }
        : { transport: 'http', url, headers: HEADERS(token) },
    },
    onProgress: () => tell?.(),
  });

  class Scripted extends BaseChatModel {
    constructor(script) {
      super({});
      this.script = script;
    }
    _llmType() { return 'scripted'; }
    bindTools() { return this; }
    async _generate(messages) {
      const answers = messages.filter((one) => one.getType() === 'tool');
      if (answers.length) this.seen = answers.map((one) => one.content);
      const message = new AIMessage(answers.length ? { content: 'Done.' }
        : { content: '', tool_calls: [{ id: 'call-1', name: this.script.toolName, args: this.script.args, type: 'tool_call' }] });
      return { generations: [{ text: message.text, message }] };
    }
  }

  const tools = await client.getTools();
  const ask = async (script) => {
    const model = new Scripted(script);
    tell = script.onProgress;
    await createAgent({ model, tools }).invoke({ messages: [{ role: 'user', content: ASK }] }, { signal: script.signal });
    return model.seen;
  };
  return session(tools.map((one) => one.name), ask, () => client.close());
}

// ---- Mastra ----

async function openMastra({ load, transport, command, env, url, token }) {
  const { MCPClient } = await load('@mastra/mcp');
  const { Agent } = await load('@mastra/core/agent');
  const { MockLanguageModelV3 } = await load('ai/test');
  const server = command ? { command: command[0], args: command.slice(1), env }
    : { url: new URL(url), requestInit: { headers: HEADERS(token) } };
  const client = new MCPClient({ id: transport, servers: { sandbox: { ...server, enableProgressTracking: true } } });
  const tools = await client.listTools();
  let tell;
  await client.progress.onUpdate('sandbox', () => tell?.());
  const ask = async (script) => {
    let seen;
    const model = scriptedAiModel(MockLanguageModelV3, script, (answers) => { seen = answers; });
    tell = script.onProgress;
    const agent = new Agent({ id: 'tester', name: 'tester', instructions: 'Test.', model, tools });
    await agent.generate(ASK, { maxSteps: 2, abortSignal: script.signal });
    return seen;
  };
  return session(Object.keys(tools), ask, () => client.disconnect());
}

// ---- Genkit ----

// multipart: else it hands every answer to its model as JSON.
async function openGenkit({ load, transport, command, env, url, token }) {
  const { genkit } = await load('genkit');
  const { createMcpClient } = await load('@genkit-ai/mcp');
  const ai = genkit({});
  const client = createMcpClient({
    name: 'tester', serverName: transport, multipart: true,
    mcpServer: command ? { command: command[0], args: command.slice(1), env, stderr: 'ignore' }
      : { url, requestInit: { headers: HEADERS(token) } },
  });
  await client.ready();
  const tools = await client.getActiveTools(ai);
  const names = tools.map((one) => one.__action.name.split('/').pop());
  let n = 0;
  const ask = async ({ toolName, args, signal }) => {
    let seen;
    const info = { name: `scripted/${n += 1}`, supports: { tools: true, media: true, multiturn: true } };
    const says = (content) => ({ finishReason: 'stop', message: { role: 'model', content: [content] } });
    const model = ai.defineModel(info, async ({ messages }) => {
      const answers = messages.filter((one) => one.role === 'tool').flatMap((one) => one.content).map((one) => one.toolResponse);
      if (!answers.length) return says({ toolRequest: { name: toolName, ref: '1', input: args } });
      seen = answers.map(({ output, content }) => [asText(output), content]);
      return says({ text: 'Done.' });
    });
    await ai.generate({ model, prompt: ASK, tools, abortSignal: signal });
    return seen;
  };
  return session(names, ask, () => client.disable());
}

export const agents = [
  {
    name: 'AI SDK', package: '@ai-sdk/mcp', open: openAiSdk,
    lacks: { progress: NO_PROGRESS, 'cancel stdio': 'its transport sends no cancellation' },
  },
  { name: "OpenAI's Agents SDK", package: '@openai/agents', open: openAgents, lacks: { progress: NO_PROGRESS } },
  { name: 'LangChain', package: '@langchain/mcp-adapters', open: openLangChain },
  { name: 'Mastra', package: '@mastra/mcp', open: openMastra },
  { name: 'Genkit', package: '@genkit-ai/mcp', open: openGenkit, lacks: { progress: NO_PROGRESS, cancel: 'hands its tools no signal' } },
];
