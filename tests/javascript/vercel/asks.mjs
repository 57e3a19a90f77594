// @vercel/postgres: a pool whose queries go over HTTP, and clients over a WebSocket.
import { neonConfig } from '@neondatabase/serverless';
import { createClient, createPool } from '@vercel/postgres';

const { DATABASE_URL, FETCH_ENDPOINT, SOCKET } = process.env;
const pool = createPool({ connectionString: DATABASE_URL });
const client = createClient({ connectionString: process.env.DIRECT_URL });
Object.assign(neonConfig, {
  fetchEndpoint: FETCH_ENDPOINT, wsProxy: () => SOCKET, useSecureWebSocket: false, pipelineConnect: false,
});
const found = [];
await pool.sql`CREATE TABLE pets (name text PRIMARY KEY, age int, born timestamptz)`;
const { rowCount } = await pool.sql`INSERT INTO pets VALUES (${'Rex'}, ${3}, ${'1970-01-01T00:00:00Z'})`;
found.push(rowCount, (await pool.sql`SELECT * FROM pets WHERE name = ${'Rex'}`).rows);
await pool.sql`INSERT INTO pets VALUES (${'Rex'}, 4, NULL)`.catch((error) => found.push(error.code));
await client.connect();
await client.query('BEGIN');
await client.sql`UPDATE pets SET age = age + ${1}`;
found.push((await client.sql`SELECT age FROM pets`).rows);
await client.query('ROLLBACK');
found.push((await client.sql`SELECT age FROM pets`).rows);
await client.end();
console.log(JSON.stringify(found));
