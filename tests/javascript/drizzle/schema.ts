import { sql } from 'drizzle-orm';
import {
  bigint, boolean, check, date, index, integer, jsonb, numeric, pgEnum, pgTable, primaryKey, serial,
  text, timestamp, uniqueIndex, uuid, varchar,
} from 'drizzle-orm/pg-core';

export const mood = pgEnum('mood', ['sad', 'happy']);

export const users = pgTable('users', {
  id: serial('id').primaryKey(),
  name: varchar('name', { length: 40 }).notNull(),
  email: text('email').notNull().unique(),
  mood: mood('mood').default('happy'),
  tags: text('tags').array(),
  data: jsonb('data').default({ a: 1 }),
  token: uuid('token').defaultRandom(),
  price: numeric('price', { precision: 10, scale: 2 }),
  made: timestamp('made', { withTimezone: true }).defaultNow(),
  day: date('day'),
  good: boolean('good').default(true).notNull(),
}, (table) => [
  index('users_name').on(table.name.desc()),
  uniqueIndex('users_lower').on(sql`lower(${table.email})`),
  check('users_price', sql`${table.price} >= 0`),
]);

export const posts = pgTable('posts', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  author: integer('author').notNull().references(() => users.id, { onDelete: 'cascade' }),
  body: text('body'),
  size: integer('size').generatedAlwaysAs(sql`length(body)`),
});

export const likes = pgTable('likes', {
  user: integer('user').notNull().references(() => users.id),
  post: bigint('post', { mode: 'number' }).notNull().references(() => posts.id),
}, (table) => [primaryKey({ columns: [table.user, table.post] })]);
