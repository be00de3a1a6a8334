import { Client } from "pg";
const client = new Client({ host: "127.0.0.1", port: 1, connectionTimeoutMillis: 2000 });
try {
    await client.connect();
} catch (e) {
    console.log((e as any).code ?? (e as Error).message);
}
