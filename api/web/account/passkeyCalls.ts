/** Creates and uses passkeys in the browser (WebAuthn). */
import { ask } from '../kit/ask.ts'

/** Tells whether this browser can use passkeys. */
export const canUsePasskeys = (): boolean => typeof PublicKeyCredential === 'function'

/** Lets the device create a passkey, and adds the passkey to the person's account. */
export async function createPasskey(name: string): Promise<void> {
  const options = await ask<PublicKeyCredentialCreationOptionsJSON>('/passkeys/options', {
    method: 'POST',
  })
  const made = await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
  })
  await ask('/passkeys', { method: 'POST', body: { name, response: toJson(made) } })
}

/** Lets the device sign a challenge with a passkey, and starts a session. */
export async function signInWithPasskey(): Promise<void> {
  const options = await ask<PublicKeyCredentialRequestOptionsJSON>('/passkey-sessions/options', {
    method: 'POST',
  })
  const signed = await navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
  })
  await ask('/passkey-sessions', { method: 'POST', body: { response: toJson(signed) } })
}

function toJson(credential: Credential | null): unknown {
  if (!(credential instanceof PublicKeyCredential)) throw new Error('No passkey was chosen')
  return credential.toJSON()
}
