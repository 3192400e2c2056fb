/**
 * Holds test mails in the forms of rarely used mail programs. These forms are in heads.jsonl and devices.jsonl of
 * test/fixtures/replies.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { chosen, fill, quoted, type ReplyMail } from './build.ts'

type Head = {
  id: string
  language: string
  /**
   * Holds the lines that the mail program writes above the quote. {@link fill} replaces their placeholders.
   */
  head: string
  /**
   * Holds the text that the mail program writes before each quoted line. It is empty if the program only appends the
   * earlier mail.
   */
  mark?: string
  /** Holds the line that the mail program writes between the reply and the quote. */
  sent?: string
}

type Device = { language: string; sent: string }

const read = <T>(name: string): T[] =>
  readFileSync(resolve(import.meta.dir, '../../../../fixtures/replies', name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

const withHead = ({ id, language, head, mark, sent }: Head): ReplyMail => {
  const { body, original } = chosen(`${language}:short`)
  const below = mark === undefined ? original : quoted(original, mark)
  const program = sent === undefined ? '' : `${sent}\n\n`
  const gap = mark === undefined ? '\n\n' : '\n'
  return {
    id,
    text: `${body}\n\n${program}${fill(language, head)}${gap}${below}\n`,
    expected: body,
    tier: 'core',
  }
}

const withDevice = ({ language, sent }: Device, index: number): ReplyMail => {
  const { body } = chosen(`${language}:short`)
  return {
    id: `device-${language}-${index}`,
    text: `${body}\n\n${sent}\n`,
    expected: body,
    tier: 'core',
  }
}

export const rare: ReplyMail[] = [
  ...read<Head>('heads.jsonl').map(withHead),
  ...read<Device>('devices.jsonl').map(withDevice),
]
