/**
 * Holds test mails of invented services, with codes, links and other numbers, such as order numbers. The mails were
 * written before the program could extract codes. Half of the mail layouts are reserved for tests, and so is one
 * invented service in each language. A hash decides which layouts and services are reserved. A reserved mail shares
 * neither its layout nor its wording with an `open` mail. The extraction rules are written with the help of the `open`
 * mails only. Therefore the reserved mails (`aside`) show whether the rules work on mails that their author has not
 * seen.
 */
import { type CodeMail, hashOf, type Layout, VOICES, type Voice, valuesOf } from './build.ts'
import { codeLayouts } from './codeLayouts.ts'
import { linkLayouts } from './linkLayouts.ts'
import { moreCodeLayouts } from './moreCodeLayouts.ts'
import { plainLayouts } from './plainLayouts.ts'
import { singles } from './singles.ts'

const isOdd = (name: string) => hashOf(name) % 2 === 1

/**
 * Tells whether the phrases of an invented service are reserved for tests. In each language, the phrases of one service
 * are reserved.
 */
const isVoiceAside = ({ name, language }: Voice) => name.endsWith('.a') === isOdd(language)

const LAYOUTS = [...codeLayouts, ...moreCodeLayouts, ...linkLayouts, ...plainLayouts]

function mailsOf(aside: boolean): CodeMail[] {
  const voices = VOICES.filter((voice) => isVoiceAside(voice) === aside)
  const layouts = LAYOUTS.filter(({ name }) => isOdd(name) === aside)
  const made = layouts.flatMap(({ name, make }: Layout, n) =>
    // Each mail layout is used with half of the invented services, and the layout after it with the other half.
    voices
      .filter((_, at) => (at + n) % 2 === 0)
      .map((voice) => {
        const id = `${name}-${voice.name.replace('.', '-')}`
        return { id, ...make(voice, valuesOf(id, voice.language)) }
      }),
  )
  return [...made, ...singles.filter(({ id }) => isOdd(id) === aside)]
}

export const CORPUS = { open: mailsOf(false), aside: mailsOf(true) }
