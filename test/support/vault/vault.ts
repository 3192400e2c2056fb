/** Returns the API path of a credential, or of a resource below the credential. */
export const vaultPath = (name: string, rest = ''): string =>
  `/v0/vault/${encodeURIComponent(name)}${rest}`
