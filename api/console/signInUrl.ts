/** The sign-in link. Browsers do not send the fragment with the token to a server. */
export const signInUrl = (baseUrl: string, token: string): string =>
  `${baseUrl}/console/login#${token}`
