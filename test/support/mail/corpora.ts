/**
 * Mail, replies and conversations written without sight of the code: the sets in test/fixtures, and beside the
 * project, where they are, public sets in `../shared/fixtures`. `npm test` reads the own sets, the whole suite all.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { isWhole } from '../database/extent.ts'

const OWN = join(import.meta.dir, '../../fixtures')
const PUBLIC = join(import.meta.dir, '../../../shared/fixtures')

/** A set by its folder: `name` stands in the name of its test. */
type Corpus<Item, Name = 'own' | 'public'> = { name: Name; items: Item[] }

const corporaOf = <Item>(
  own: string,
  other: string,
  read: (path: string) => Item[],
): Corpus<Item>[] => [
  { name: 'own', items: read(join(OWN, own)) },
  ...(isWhole && existsSync(PUBLIC)
    ? [{ name: 'public' as const, items: read(join(PUBLIC, other)) }]
    : []),
]

/** Paths of messages as they came over SMTP, one file each. */
export const mailCorpora = (): Corpus<string>[] =>
  corporaOf('mails', 'eml', (folder) =>
    (readdirSync(folder, { recursive: true }) as string[])
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile() && !path.endsWith('.jsonl'))
      .toSorted(),
  )

/** A mail and its reply text. `alt`: other accepted texts. `tier`: `core` where all conventions agree, else `policy`. */
export type ReplyCase = {
  id: string
  input_kind: 'text' | 'eml'
  input: string
  expected: string
  alt?: string[]
  tier: 'core' | 'policy'
  class?: string
}

export function readReplies(path: string): ReplyCase[] {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

/**
 * `edges`: joined and cut-off attributions, unlisted devices and odd characters, with hard negatives beside each.
 * `sealed`: without its inline answers, because its author left the questions out and docs/contract.md keeps them.
 */
export const replyCorpora = (): Corpus<ReplyCase, 'own' | 'edges' | 'sealed' | 'public'>[] => [
  ...corporaOf('replies/strangers.jsonl', 'replies/development.jsonl', readReplies),
  { name: 'edges', items: readReplies(join(OWN, 'replies/edges.jsonl')) },
  {
    name: 'sealed',
    items: readReplies(join(OWN, 'replies/a.jsonl.gz')).filter((mail) => mail.class !== 'inline'),
  },
]

/** Messages in the order of their arrival; `expected`: their keys by thread. `must`: false for a judgement call. */
export type ThreadScenario = {
  id: string
  why: string
  must: boolean
  expected: string[][]
  messages: {
    key: string
    messageId: string | null
    subject: string
    inReplyTo: string | null
    references: string | null
    inbox: string
    from: string
    sent: boolean
  }[]
}

export const threadCorpora = (): Corpus<ThreadScenario>[] =>
  corporaOf('threading/scenarios.json', 'threading/development.json', (path) =>
    JSON.parse(readFileSync(path, 'utf8')),
  )
