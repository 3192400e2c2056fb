import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a credential of the vault as it appears in a list, without its secret. */
export type CredentialItem = Operations['getVault']['result']['credentials'][number]
/** Describes a credential with its secret. */
export type Credential = Operations['getVaultByName']['result']

type ListQuery = NonNullable<Operations['getVault']['input']['query']>

/**
 * Makes the path parameters and the query parameters with which a call names a credential. A path segment of a URL
 * cannot be "." or "..", so the query must hold such a name.
 */
const named = <More extends object>(name: string, more?: More) => {
  const isStep = name === '.' || name === '..'
  return {
    path: { name: isStep ? '-' : name, ...(more as More) },
    ...(isStep ? { query: { name } } : {}),
  }
}

/**
 * Manages the credentials of the vault by their names.
 *
 * @example
 * await purser.vault.put('shop', { type: 'LOGIN', data: { username: 'ann', password: 'kept' } })
 * const { code } = await purser.vault.totp('shop')
 */
export function vault(http: Http) {
  /**
   * Returns one page of credentials. Without `limit`, the page contains as many credentials as fit into the size limit
   * of a response.
   */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getVault', { query }, options)
  return {
    list,
    /** Iterates over every credential, newest first. The iteration loads the pages of credentials one after another. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.credentials,
        query.pageToken,
      ),
    /**
     * Returns a credential with its secret, except that a TOTP secret is never returned. Fails with ExpiredError after
     * the time `expiresAt` of the credential.
     */
    get: (name: string, options?: CallOptions) => http.call('getVaultByName', named(name), options),
    /** Stores a credential. The new credential completely replaces an existing credential of the same name. */
    put: (
      name: string,
      credential: Operations['putVaultByName']['input']['body'],
      options?: CallOptions,
    ) => http.call('putVaultByName', { ...named(name), body: credential }, options),
    /** Deletes a credential with all its versions permanently. */
    delete: (name: string, options?: CallOptions) =>
      http.call('deleteVaultByName', named(name), options),
    /** Returns the current one-time code of a credential. */
    totp: (name: string, options?: CallOptions) =>
      http.call('getVaultByNameTotp', named(name), options),
    /**
     * Takes a backup code of a credential and marks it as used. The client never retries this call after a lost
     * response, because a retry would take another backup code.
     */
    takeBackupCode: (name: string, options?: CallOptions) =>
      http.call('postVaultByNameTotpBackup', named(name), options),
    /**
     * Changes who may read a credential, and where it may be used. With a project key, a caller can only make these
     * limits stricter.
     */
    protect: (
      name: string,
      protection: Operations['patchVaultByName']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchVaultByName', { ...named(name), body: protection }, options),
    /**
     * Makes the service send an HTTPS request with a secret filled in, and returns the host's response without the
     * secret. The service sends the request at most once. If the service's response is lost, you can repeat the call
     * with the same `idempotencyKey`. If the returned state is `pending`, read the result with `getUse`.
     */
    use: (
      name: string,
      request: Operations['postVaultByNameUse']['input']['body']['request'],
      options?: CallOptions & { idempotencyKey?: string },
    ) => http.call('postVaultByNameUse', { ...named(name), body: { request } }, options),
    /**
     * Waits until a request with a secret has ended, and returns the record of the request with the host's response.
     * The service keeps this record for ten minutes after the end of the request.
     */
    getUse: (name: string, useId: string, options?: CallOptions) =>
      http.call('getVaultByNameUsesByUseId', named(name, { useId }), options),
    /** Signs data with a key of the credential: HMAC-SHA256, Ed25519, or AWS Signature Version 4. */
    sign: (
      name: string,
      input: Operations['postVaultByNameSign']['input']['body'],
      options?: CallOptions,
    ) => http.call('postVaultByNameSign', { ...named(name), body: input }, options),
    listVersions: (name: string, options?: CallOptions) =>
      http.call('getVaultByNameVersions', named(name), options),
    getVersion: (name: string, version: number, options?: CallOptions) =>
      http.call('getVaultByNameVersionsByVersion', named(name, { version }), options),
    /** Makes an old version of a credential the newest version. */
    restoreVersion: (name: string, version: number, options?: CallOptions) =>
      http.call('postVaultByNameVersionsByVersionRestore', named(name, { version }), options),
  }
}
