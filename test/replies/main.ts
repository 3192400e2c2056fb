/**
 * Measures, by class of mail, how well the service finds the reply text in sets of mails, and prints the mails with
 * wrong text: `npm run replies -- SET.jsonl.gz…`.
 */
import { shown } from '../codes/report.ts'
import { scoreReplies } from '../shared/mail/replyText/score.ts'
import { readReplies } from '../support/mail/corpora.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

for (const path of process.argv.slice(2)) {
  const mails = readReplies(path)
  say(`${path}: ${mails.length} mails`)
  const classes = Map.groupBy(mails, (mail) => mail.class ?? 'all')
  for (const [name, own] of [...classes, ['together', mails] as const]) {
    const { all, accepted, core, coreExact, leaked, emptied } = await scoreReplies(own)
    say(`  ${name}: ${shown('accepted', { right: accepted, all })}`)
    if (own.length === mails.length) {
      say(`  ${shown('exact in core', { right: coreExact, all: core })}`)
      say(`  with words of others ${leaked}, emptied ${emptied}`)
    }
  }
  for (const { id, got, wanted } of (await scoreReplies(mails)).misses) {
    say(`  - ${id}\n    got:    ${JSON.stringify(got)}\n    wanted: ${JSON.stringify(wanted)}`)
  }
}
