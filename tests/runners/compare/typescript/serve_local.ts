const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => new Response("served " + new URL(request.url).pathname) });
console.log(await (await fetch(`http://127.0.0.1:${server.port}/x`)).text());
server.stop(true);
