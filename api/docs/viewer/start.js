/**
 * Starts Swagger UI with the OpenAPI document of this service. If a person types an API key into the page, the page
 * sends the key only in requests to the service.
 */
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
  // The Content-Security-Policy allows the API viewer to send requests only to its own host.
  spec: { ...description, servers: [{ url: location.origin }] },
  dom_id: '#viewer',
  deepLinking: true,
  // If all tags are open and there are more than about 135 operations, Swagger UI stops drawing within the first tag.
  docExpansion: 'list',
  filter: true,
  tryItOutEnabled: true,
  // By default Swagger UI sends the OpenAPI document to a validator on the internet, so this code turns the validator
  // off.
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
