/** Tests that the file sql/schema.sql contains the whole schema that all migrations make. */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeSchema } from '../../../sql/schema/describeSchema.ts'
import { createTestDatabase } from '../../support/database/database.ts'

const FILE = join(import.meta.dir, '../../../sql/schema.sql')
const HEAD =
  '-- The schema that all migrations make. `npm run schema` writes this file; a test compares it.\n\n'

test('the file schema.sql equals the schema that the migrations create', async () => {
  await using database = await createTestDatabase()
  const text = HEAD + (await describeSchema(database.pool))
  if (process.env.UPDATE_SCHEMA === 'true') writeFileSync(FILE, text)
  expect(readFileSync(FILE, 'utf8')).toBe(text)
})

test('each database table has a comment', async () => {
  await using database = await createTestDatabase()
  const { rows } = await database.pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and obj_description(oid, 'pg_class') is null`,
  )
  expect(rows).toEqual([])
})

test('the schema description contains tables, columns, comments, constraints, indexes, triggers and functions', async () => {
  await using database = await createTestDatabase()
  await database.pool.query(`
    create table zoo (id bigint generated always as identity primary key, name text not null default 'Ada' check (name <> ''));
    comment on table zoo is 'Animals';
    comment on column zoo.name is 'As on the door';
    create index zoo_names on zoo (lower(name)) where id > 3;
    create function zoo_guard() returns trigger language plpgsql as 'begin return new; end';
    create trigger zoo_guarded before insert on zoo for each row execute function zoo_guard()`)
  const text = await describeSchema(database.pool)
  for (const part of [
    `-- Animals\ncreate table zoo (\n  id bigint generated always as identity not null,\n  -- As on the door\n  name text default 'Ada'::text not null,`,
    `  constraint zoo_name_check CHECK ((name <> ''::text)),\n  constraint zoo_pkey PRIMARY KEY (id)\n);`,
    'CREATE INDEX zoo_names ON public.zoo USING btree (lower(name)) WHERE (id > 3);',
    'CREATE TRIGGER zoo_guarded BEFORE INSERT ON zoo FOR EACH ROW EXECUTE FUNCTION zoo_guard();',
    'CREATE OR REPLACE FUNCTION public.zoo_guard()',
  ]) {
    expect(text).toContain(part)
  }
})
