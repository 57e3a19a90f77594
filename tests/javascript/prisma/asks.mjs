// Asks through the client without an engine, over the wire: its schema engine would be downloaded.
import { PrismaPg } from '@prisma/adapter-pg';
import prismaClient from '@prisma/client';
const { PrismaClient } = prismaClient;
const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });
const found = {};
const ada = await client.user.create({
  data: { email: 'ada@example.com', tags: ['a', 'b'], data: { k: [1, null] }, posts: { create: [{ title: 'one' }, { title: 'two' }] } },
  include: { posts: true },
});
found.created = [ada.email, ada.tags, ada.data, ada.posts.map((each) => each.title)];
found.many = await client.post.createMany({ data: [3, 4, 5].map((n) => ({ title: `t${n}`, authorId: ada.id })) });
found.page = await client.post.findMany({ where: { title: { startsWith: 't' }, author: { is: { tags: { has: 'a' } } } }, orderBy: { title: 'desc' }, take: 2, select: { title: true } });
found.inside = await client.user.count({ where: { data: { path: ['k', '0'], equals: 1 } } });
found.grouped = await client.post.groupBy({ by: ['authorId'], _count: true, _max: { title: true } });
try { await client.user.create({ data: { email: 'ada@example.com' } }); } catch (error) { found.twice = [error.code, error.meta?.target ?? null]; }
try {
  await client.$transaction(async (inside) => { await inside.user.create({ data: { email: 'b' } }); throw new Error('back'); });
} catch (error) { found.back = [error.message, await client.user.count()]; }
found.batch = (await client.$transaction([client.post.updateMany({ data: { title: 'all' } }), client.post.count({ where: { title: 'all' } })]));
found.upsert = (await client.user.upsert({ where: { email: 'c' }, create: { email: 'c' }, update: {} })).tags;
found.raw = await client.$queryRaw`SELECT count(*)::int AS n FROM "Post" WHERE "authorId" = ${ada.id}`;
await client.post.deleteMany({});
found.left = await client.user.delete({ where: { id: ada.id }, select: { email: true } });
console.log(JSON.stringify(found));
await client.$disconnect();
