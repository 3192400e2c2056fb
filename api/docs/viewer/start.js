/** Starts Swagger UI with the document of this service. A key typed into the page stays in the page. */
const entries = (request) => {
  const headers = request.get('headers')
  return headers === undefined ? [] : [...headers.entries()]
}
const samples = {
  javascript: (request) => {
    const headers = Object.fromEntries(entries(request))
    const body = request.get('body')
    const init = { method: request.get('method'), headers, ...(body ? { body } : {}) }
    return `const response = await fetch(${JSON.stringify(request.get('url'))}, ${JSON.stringify(init, null, 2)})\nconsole.log(await response.json())`
  },
  python: (request) => {
    const body = request.get('body')
    const headers = Object.fromEntries(entries(request))
    return [
      'import requests',
      '',
      `response = requests.request(${JSON.stringify(request.get('method'))}, ${JSON.stringify(request.get('url'))},`,
      `    headers=${JSON.stringify(headers)}${body ? `,\n    data=${JSON.stringify(body)}` : ''})`,
      'print(response.json())',
    ].join('\n')
  },
}

const description = await (await fetch('/openapi.json')).json()
globalThis.SwaggerUIBundle({
  // The Content-Security-Policy allows requests only to the host of this page.
  spec: { ...description, servers: [{ url: location.origin }] },
  dom_id: '#viewer',
  deepLinking: true,
  // With all tags open, Swagger UI stops drawing in the first tag if there are more than some 135 operations.
  docExpansion: 'list',
  filter: true,
  tryItOutEnabled: true,
  // By default Swagger UI calls a validator on the internet.
  validatorUrl: null,
  requestSnippetsEnabled: true,
  requestSnippets: {
    languages: ['curl_bash', 'javascript', 'python'],
    generators: {
      curl_bash: { title: 'curl', syntax: 'bash' },
      javascript: { title: 'JavaScript', syntax: 'javascript' },
      python: { title: 'Python', syntax: 'python' },
    },
  },
  plugins: [
    {
      fn: {
        requestSnippetGenerator_javascript: samples.javascript,
        requestSnippetGenerator_python: samples.python,
      },
    },
  ],
})
