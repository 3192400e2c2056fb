/**
 * Returns the URL of the page to which the company's identity provider redirects a person after the sign-in. The
 * service has registered this URL with the provider as its redirect URI.
 */
export const companyPage = (baseUrl: string): string =>
  `${baseUrl.replace(/\/$/, '')}/console/company`
