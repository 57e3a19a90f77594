// Asks over the wire, and over HTTP as `kysely-neon` does: both find the same.
import { neon, neonConfig } from '@neondatabase/serverless';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { NeonDialect } from 'kysely-neon';
import pg from 'pg';

async function asked(db) {
  const found = [];
  await db.schema.createTable('person')
    .addColumn('id', 'integer', (column) => column.primaryKey().generatedAlwaysAsIdentity())
    .addColumn('name', 'varchar(20)', (column) => column.notNull().unique())
    .addColumn('data', 'jsonb')
    .addColumn('made', 'timestamptz', (column) => column.defaultTo(sql`now()`))
    .execute();
  await db.schema.createIndex('person_data').on('person').column('made').execute();
  const { id } = await db.insertInto('person').values({ name: 'Ada', data: JSON.stringify({ k: [1] }) })
    .returning('id').executeTakeFirstOrThrow();
  await db.insertInto('person').values([{ name: 'Bob' }, { name: 'Eve' }]).execute();
  found.push(id, await db.selectFrom('person').select(['name', 'data']).where('id', 'in', [1, 3]).orderBy('name').execute());
  const changed = await db.updateTable('person').set({ name: 'Zoe' }).where('name', '=', 'Eve').executeTakeFirst();
  found.push(String(changed.numUpdatedRows));
  await db.insertInto('person').values({ name: 'Ada' }).execute().catch((error) => found.push(error.code));
  await db.insertInto('person').values({ name: 'Ada' }).onConflict((on) => on.column('name').doNothing()).execute();
  found.push(await db.with('late', (one) => one.selectFrom('person').selectAll().where('id', '>', 1))
    .selectFrom('late').select(({ fn }) => fn.countAll().as('n')).executeTakeFirst());
  const tables = await db.introspection.getTables();
  found.push(tables.map((table) => [table.name, table.columns.map((each) => [each.name, each.dataType, each.isNullable])]));
  await db.schema.dropTable('person').execute();
  return found;
}

const { DATABASE_URL, FETCH_ENDPOINT } = process.env;
neonConfig.fetchEndpoint = FETCH_ENDPOINT;
const wire = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: DATABASE_URL }) }) });
const found = { wire: await asked(wire) };
await wire.schema.createTable('t').addColumn('n', 'integer').execute();
await wire.transaction().execute(async (inside) => {
  await inside.insertInto('t').values({ n: 1 }).execute();
  throw new Error('back');
}).catch((error) => { found.back = error.message; });
found.left = await wire.selectFrom('t').selectAll().execute();
await wire.destroy();
found.http = await asked(new Kysely({ dialect: new NeonDialect({ neon: neon(DATABASE_URL) }) }));
console.log(JSON.stringify(found));
