/**
 * Returns one form for all header names that some host reads as the same header. A host with CGI variables (Rack, WSGI,
 * PHP) reads `X_Http_Method` as `X-Http-Method`. PHP and older Apache servers read `X.Http.Method` alike too. Code
 * that refuses a header by its name compares this form.
 */
export const headerKey = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '-')
