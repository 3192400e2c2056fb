/**
 * Sends the browser to the company's identity provider, and handles the return of the browser from the identity
 * provider.
 */
import { ask } from '../kit/ask.ts'

/** Names the entry of `sessionStorage` that holds the reason why the person went to the identity provider. */
const KEY = 'purser-company'
/** Names the entry of `sessionStorage` that holds the address of the consent page on which the person signs in. */
const CONSENT_KEY = 'purser-company-consent'
const CONSENT_PAGE = '/console/connect'

/**
 * Sends the browser to the company's identity provider.
 * @param connects tells whether a person who is already signed in connects a company account.
 */
export async function goToCompany(connects: boolean): Promise<void> {
  const path = connects ? '/company-account' : '/company-sign-ins'
  const { url } = await ask<{ url: string }>(path, { method: 'POST' })
  sessionStorage.setItem(KEY, connects ? 'connect' : 'sign-in')
  if (location.pathname === CONSENT_PAGE) {
    sessionStorage.setItem(CONSENT_KEY, CONSENT_PAGE + location.hash)
  } else sessionStorage.removeItem(CONSENT_KEY)
  location.assign(url)
}

/**
 * Completes the sign-in that {@link goToCompany} began. The URL of the page holds the identity provider's response to
 * the sign-in.
 * @returns the address of the page that the person sees next.
 */
export async function returnFromCompany(): Promise<string> {
  const query = location.search
  // The code replaces the URL, so that the authorization code disappears from the browser history.
  history.replaceState(null, '', '/console/company')
  const connects = sessionStorage.getItem(KEY) === 'connect'
  const consentPage = sessionStorage.getItem(CONSENT_KEY)
  sessionStorage.removeItem(KEY)
  sessionStorage.removeItem(CONSENT_KEY)
  const path = connects ? '/company-account/answer' : '/company-sign-ins/answer'
  await ask(path, { method: 'POST', body: { query } })
  return connects ? '/console#/you' : (consentPage ?? '/console')
}
