/**
 * Holds mails in the form of mail clients, with the text that a reader calls new. The author wrote the mails before
 * reading the rules. A hash of the identifier puts half of the mails aside. Rules are made with the `open` mails only.
 * The mails `aside` show whether the rules generalise.
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
