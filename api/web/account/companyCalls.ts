/** Sends the browser to the company's identity provider, and handles its return. */
import { ask } from '../kit/ask.ts'

/** This tab stores under this key why the person went to the identity provider. */
const KEY = 'purser-company'

/** Sends the browser to the identity provider. @param connects tells that a signed-in person connects their account. */
export async function goToCompany(connects: boolean): Promise<void> {
  const path = connects ? '/company-account' : '/company-sign-ins'
  const { url } = await ask<{ url: string }>(path, { method: 'POST' })
  sessionStorage.setItem(KEY, connects ? 'connect' : 'sign-in')
  location.assign(url)
}

/** Completes what {@link goToCompany} began, with the provider's answer in the address of the page. */
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
