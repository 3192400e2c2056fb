/**
 * Checks a web page with axe (an accessibility checker). The page must run the init script of `axe-core` and bypass its
 * content security policy.
 */
import { expect } from 'bun:test'
import { type ConsolePage, screenshot } from './browser.ts'

type Violation = { id: string; help: string; nodes: { target: string[]; html: string }[] }

/** Lists the axe rules that depend only on colours. */
export const COLOUR_RULES = ['color-contrast', 'link-in-text-block']

/** Returns the violations that axe finds on a page. By default axe applies all its rules. */
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

/** Checks a console screen with all axe rules in the light theme, and with the colour rules in the dark theme. */
export async function judge({ page }: Pick<ConsolePage, 'page'>, name: string): Promise<void> {
  await screenshot(page, `${name}-light`)
  expect([name, await violations({ page })]).toEqual([name, []])
  await page.emulateMedia({ colorScheme: 'dark' })
  await screenshot(page, `${name}-dark`)
  expect([name, 'dark', await violations({ page }, COLOUR_RULES)]).toEqual([name, 'dark', []])
  await page.emulateMedia({ colorScheme: 'light' })
}
