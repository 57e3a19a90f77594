// Asks over the wire, and over HTTP as `drizzle-orm/neon-http` does: both find the same.
import { neon, neonConfig } from '@neondatabase/serverless';
import { count, desc, eq, gt, sql } from 'drizzle-orm';
import { drizzle as overHttp } from 'drizzle-orm/neon-http';
import { drizzle as overWire } from 'drizzle-orm/node-postgres';
import { integer, jsonb, pgTable, serial, text, timestamp, varchar } from 'drizzle-orm/pg-core';

const users = pgTable('users', {
  id: serial('id').primaryKey(),
  name: varchar('name', { length: 40 }).notNull(),
  email: text('email').notNull(),
  tags: text('tags').array(),
  data: jsonb('data'),
  made: timestamp('made', { withTimezone: true }),
});
const posts = pgTable('posts', { author: integer('author').notNull(), body: text('body') });

async function asked(db) {
  const found = [];
  const given = { name: 'Ada', email: 'ada@example.com', tags: ['a', 'b,c'], data: { k: [1, null] }, made: new Date(0) };
  const [ada] = await db.insert(users).values([given, { name: 'Bob', email: 'bob@example.com' }]).returning();
  found.push(ada.name, ada.tags, ada.data, ada.made.getTime());
  await db.insert(posts).values([{ author: ada.id, body: 'one' }, { author: ada.id, body: 'two' }]);
  found.push(await db.select({ name: users.name, n: count(posts.body) }).from(users)
    .leftJoin(posts, eq(posts.author, users.id)).groupBy(users.id).orderBy(desc(users.id)));
  await db.insert(users).values({ name: 'Ann', email: 'ada@example.com' })
    .onConflictDoUpdate({ target: users.email, set: { name: sql`excluded.name` } });
  found.push(await db.select({ name: users.name }).from(users).where(gt(users.made, new Date(-1))).orderBy(users.name));
  found.push((await db.execute(sql`SELECT count(*)::int AS n FROM users`)).rows);
  await db.insert(users).values(given).catch((error) => found.push(error.cause.code));
  found.push((await db.delete(users).returning({ name: users.name })).length);
  return found;
}

const { DATABASE_URL, FETCH_ENDPOINT } = process.env;
neonConfig.fetchEndpoint = FETCH_ENDPOINT;
const wire = overWire(DATABASE_URL);
const found = { wire: await asked(wire) };
await wire.transaction(async (inside) => {
  await inside.insert(users).values({ name: 'gone', email: 'gone' });
  await inside.transaction(async (deeper) => deeper.rollback()).catch(() => {});
  inside.rollback();
}).catch((error) => { found.back = error.message; });
await wire.$client.end();
const http = overHttp(neon(DATABASE_URL));
found.http = await asked(http);
found.batch = (await http.batch([
  http.insert(users).values({ name: 'x', email: 'x' }),
  http.select({ name: users.name }).from(users),
]))[1];
console.log(JSON.stringify(found));
