import { expect, test } from 'bun:test'
import { isMcpResource, isOAuthOn } from '../../../shared/oauth/resource.ts'

test.each([
  ['https://mail.example.com', true],
  ['http://127.0.0.1', true],
  ['http://127.0.0.1:3000', true],
  ['http://[::1]:3000', true],
  ['http://localhost:3000', true],
  ['http://mail.example.com', false],
  ['http://localhost.example.com', false],
  ['http://127.0.0.1.example.com', false],
  ['http://127.0.0.2', false],
  ['', false],
])('a service with the base URL %p has OAuth enabled: %p', (baseUrl, isOn) => {
  expect(isOAuthOn(baseUrl)).toBe(isOn)
})

test.each([
  ['https://mail.example.com/mcp', true],
  ['https://mail.example.com/mcp/', true],
  ['https://mail.example.com/mcp?names=dotted', true],
  ['https://mail.example.com/mcp?names=underscore', true],
  ['https://mail.example.com/mcp/?names=dotted', true],
  ['https://mail.example.com/mcp?names=other', false],
  ['https://mail.example.com/mcp?names=dotted&a=b', false],
  ['https://mail.example.com/mcp//', false],
  ['https://mail.example.com/', false],
  ['https://mail.example.com.evil.example/mcp', false],
  ['https://other.example.com/mcp', false],
  ['', false],
])('%p is accepted as the MCP endpoint of https://mail.example.com: %p', (resource, isOurs) => {
  expect(isMcpResource(resource, 'https://mail.example.com')).toBe(isOurs)
})
