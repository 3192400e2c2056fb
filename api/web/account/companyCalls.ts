/** The way to the company's identity provider and back. */
import { ask } from '../kit/ask.ts'

/** What the person is there for; this tab remembers it. */
const KEY = 'purser-company'

/** Leads the browser to the provider. @param connects the person who is signed in connects their account. */
export async function goToCompany(connects: boolean): Promise<void> {
  const path = connects ? '/company-account' : '/company-sign-ins'
  const { url } = await ask<{ url: string }>(path, { method: 'POST' })
  sessionStorage.setItem(KEY, connects ? 'connect' : 'sign-in')
  location.assign(url)
}

/** Ends what {@link goToCompany} began, with the answer in the page's address. */
export async function returnFromCompany(): Promise<'connect' | 'sign-in'> {
  const query = location.search
  // Removes the code from the browser history.
  history.replaceState(null, '', '/console/company')
  const purpose = sessionStorage.getItem(KEY) === 'connect' ? 'connect' : 'sign-in'
  sessionStorage.removeItem(KEY)
  const path = purpose === 'connect' ? '/company-account/answer' : '/company-sign-ins/answer'
  await ask(path, { method: 'POST', body: { query } })
  return purpose
}
