/** The link that signs its holder in, with the token where no server sees it. */
export const signInUrl = (baseUrl: string, token: string): string =>
  `${baseUrl}/console/login#${token}`
