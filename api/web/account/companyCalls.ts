/**
 * Sends the browser to the company's identity provider, and handles the return of the browser from the identity
 * provider.
 */
import { ask } from '../kit/ask.ts'

/** Names the entry of `sessionStorage` that holds the reason why the person went to the identity provider. */
const KEY = 'purser-company'

/**
 * Sends the browser to the company's identity provider.
 * @param connects tells whether a person who is already signed in connects a company account.
 */
export async function goToCompany(connects: boolean): Promise<void> {
  const path = connects ? '/company-account' : '/company-sign-ins'
  const { url } = await ask<{ url: string }>(path, { method: 'POST' })
  sessionStorage.setItem(KEY, connects ? 'connect' : 'sign-in')
  location.assign(url)
}

/**
 * Completes the sign-in that {@link goToCompany} began. The URL of the page holds the identity provider's response to
 * the sign-in.
 */
export async function returnFromCompany(): Promise<'connect' | 'sign-in'> {
  const query = location.search
  // The URL is replaced, so that the authorization code disappears from the browser history.
  history.replaceState(null, '', '/console/company')
  const purpose = sessionStorage.getItem(KEY) === 'connect' ? 'connect' : 'sign-in'
  sessionStorage.removeItem(KEY)
  const path = purpose === 'connect' ? '/company-account/answer' : '/company-sign-ins/answer'
  await ask(path, { method: 'POST', body: { query } })
  return purpose
}
