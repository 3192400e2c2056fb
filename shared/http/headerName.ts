/**
 * Returns the same form for all header names that some servers treat as one header. A server with CGI variables (Rack,
 * WSGI, PHP) reads `X_Http_Method` as `X-Http-Method`. PHP and older Apache servers read `X.Http.Method` in the same
 * way. Code that refuses a header by its name compares this form.
 */
export const headerKey = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '-')
