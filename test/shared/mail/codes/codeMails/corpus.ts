/**
 * Holds mails of services with codes, links and other numbers. The mails were written before the extraction.
 * The hash of a name puts half of the layouts aside, and one of the two voices of each language. A mail aside shares
 * neither layout nor wording with an open mail. Rules are made with the `open` mails alone. The mails `aside` show
 * whether the rules generalise.
 */
import { type CodeMail, hashOf, type Layout, VOICES, type Voice, valuesOf } from './build.ts'
import { codeLayouts } from './codeLayouts.ts'
import { linkLayouts } from './linkLayouts.ts'
import { moreCodeLayouts } from './moreCodeLayouts.ts'
import { plainLayouts } from './plainLayouts.ts'
import { singles } from './singles.ts'

const isOdd = (name: string) => hashOf(name) % 2 === 1

/**
 * Tells whether a voice (the phrases of one invented service) is kept aside. One voice of each language is kept aside.
 */
const isVoiceAside = ({ name, language }: Voice) => name.endsWith('.a') === isOdd(language)

const LAYOUTS = [...codeLayouts, ...moreCodeLayouts, ...linkLayouts, ...plainLayouts]

function mailsOf(aside: boolean): CodeMail[] {
  const voices = VOICES.filter((voice) => isVoiceAside(voice) === aside)
  const layouts = LAYOUTS.filter(({ name }) => isOdd(name) === aside)
  const made = layouts.flatMap(({ name, make }: Layout, n) =>
    // Each mail layout is made in every second language, and the next layout is made in the omitted languages.
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
