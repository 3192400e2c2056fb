/**
 * Holds test mails in the forms of mail clients, each with the text that a reader would recognise as the reply. The
 * mails were written before their author had read the extraction rules. A hash of the mail's identifier decides whether
 * the mail is reserved for tests. The extraction rules are written with the help of the `open` mails only. Therefore
 * the reserved mails (`aside`) show whether the rules work on mails that the rules' author has not seen.
 */
import { createHash } from 'node:crypto'
import { apple } from './apple.ts'
import type { ReplyMail } from './build.ts'
import { eastAsia } from './eastAsia.ts'
import { footers } from './footers.ts'
import { forwards } from './forwards.ts'
import { fresh } from './fresh.ts'
import { gmail } from './gmail.ts'
import { inlineAnswers } from './inline.ts'
import { markup } from './markup.ts'
import { messy } from './messy.ts'
import { outlook } from './outlook.ts'
import { rare } from './rare.ts'
import { regional } from './regional.ts'
import { webmail } from './webmail.ts'

const all: ReplyMail[] = [
  ...gmail,
  ...apple,
  ...outlook,
  ...webmail,
  ...regional,
  ...eastAsia,
  ...inlineAnswers,
  ...forwards,
  ...fresh,
  ...rare,
  ...messy,
  ...footers,
  ...markup,
]

const isAside = ({ id }: ReplyMail) => (createHash('sha256').update(id).digest()[0] ?? 0) % 2 === 1

export const CORPUS = { open: all.filter((mail) => !isAside(mail)), aside: all.filter(isAside) }
