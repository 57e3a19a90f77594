// What a program of TypeScript may write, and what it may not: `tsc --strict` checks this file.
import { connect, SqlError, type Query, type Rows, type Sql } from "qserver-client";
import { useLive } from "qserver-client/react";

interface Todo {
  id: number;
  title: string;
  done: boolean;
}

const sql: Sql = connect("https://db.example.com", { key: "svc_k_…", session: true, database: "app" });

export async function examples(signal: AbortSignal): Promise<string[]> {
  const todos: Rows<Todo> = await sql<Todo>`SELECT * FROM todos WHERE id = ANY(${[1, 2]})`.with({ signal });
  const titles: string[] = todos.map(({ title }) => title);
  const [first] = await sql<[number, bigint]>`SELECT 1, 2`.with({ arrays: true, bigint: true });
  const sum: bigint = BigInt(first?.[0] ?? 0) + (first?.[1] ?? 0n);
  await sql`INSERT INTO blobs VALUES (${sum}, ${new Date()}, ${new Uint8Array(3)}, ${null}, ${{ deep: [1] }})`;
  for await (const { done } of sql<Todo>`SELECT * FROM todos`) if (done) break;
  const moved: number = await sql.transaction(async (tx) => {
    await tx`UPDATE todos SET done = ${true}`;
    return tx.transaction(async (inner) => (await inner`SELECT 1`).affectedRows);
  }, { retries: 3, signal });
  for await (const { rows, inserted } of sql<Todo>`SELECT * FROM todos`.live({ everyMs: 200, signal })) {
    titles.push(...rows.map(({ title }) => title), inserted[0]?.title ?? "");
  }
  for await (const { version, changes } of sql.changes({ since: todos.version, tables: ["todos"] })) {
    titles.push(`${version} ${changes[0]?.op}`);
  }
  const part: Query = sql`done = ${true}`;
  await sql`SELECT ${sql.id("todos", "id")} FROM todos WHERE ${part}`;
  await sql.insert("todos", [{ id: moved, title: "x", done: false }], { onConflict: "ignore" });
  try {
    await sql.asOf(new Date(0)).read`SELECT 1`;
  } catch (error) {
    if (error instanceof SqlError && error.code === "QS004") return [error.message, error.applied];
    throw error;
  }
  return titles;
}

export function Todos(): string {
  const { rows, error, isLoading } = useLive(sql<Todo>`SELECT * FROM todos`, { everyMs: 500 });
  return isLoading ? "…" : error?.message ?? rows.map(({ title }) => title).join();
}

// @ts-expect-error: a text is no template
sql("SELECT 1");
// @ts-expect-error: undefined is no value
sql`SELECT ${undefined}`;
// @ts-expect-error: no such option
sql`SELECT 1`.with({ maxRosw: 1 });
// @ts-expect-error: a row has no such column
sql<Todo>`SELECT * FROM todos`.then((rows) => rows[0].titel);
