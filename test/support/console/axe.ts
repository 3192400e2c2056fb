/** The judgement of axe. The page has the init script of `axe-core`, and bypasses its policy. */
import { expect } from 'bun:test'
import { type ConsolePage, screenshot } from './browser.ts'

type Violation = { id: string; help: string; nodes: { target: string[]; html: string }[] }

/** The axe rules that depend only on colours. */
export const COLOUR_RULES = ['color-contrast', 'link-in-text-block']

/** What axe finds on a page; all rules by default. */
export async function violations(
  { page }: Pick<ConsolePage, 'page'>,
  rules?: readonly string[],
): Promise<string[]> {
  const options = rules
    ? { resultTypes: ['violations'], runOnly: { type: 'rule', values: rules } }
    : { resultTypes: ['violations'], rules: { region: { enabled: true } } }
  const found = await page.evaluate<Violation[]>(
    `axe.run(document, ${JSON.stringify(options)}).then((result) => result.violations)`,
  )
  return found.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, html }) => `${id}: ${help} at ${target.join(' ')} ${html.slice(0, 200)}`),
  )
}

/** Checks a screen: all rules in the light theme, the colour rules in the dark theme. */
export async function judge({ page }: Pick<ConsolePage, 'page'>, name: string): Promise<void> {
  await screenshot(page, `${name}-light`)
  expect([name, await violations({ page })]).toEqual([name, []])
  await page.emulateMedia({ colorScheme: 'dark' })
  await screenshot(page, `${name}-dark`)
  expect([name, 'dark', await violations({ page }, COLOUR_RULES)]).toEqual([name, 'dark', []])
  await page.emulateMedia({ colorScheme: 'light' })
}
