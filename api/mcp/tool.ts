import type { Static, TObject } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import type { Access } from '../docs/routeTable.ts'
import { refuseUnstorable } from '../http/body.ts'
import { badRequest, type ErrorCode } from '../http/errors.ts'
import type { Caller } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { describeValidationError } from '../http/validation.ts'

/** What a tool works with: the services, the project the key acts as, and the end of the caller's patience. */
export type ToolContext = {
  services: Services
  projectId: string
  inboxAddress: string
  /** The same, as operations want to know it that check and record for themselves. */
  caller: Caller
  /** Aborts when the connection of the call is gone; a tool that waits must end then. */
  signal: AbortSignal
}

/** What a tool answers: data that fits its output schema, and a short text for hosts that read no data. */
export type ToolAnswer = { data: Record<string, unknown>; text: string }

/** How a host may treat a tool (MCP, ToolAnnotations). */
export type ToolHints = {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

/** The hints of a tool that changes nothing and reaches nothing outside this service. */
export const READS: ToolHints = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** An input schema refuses what it does not name: a misspelt argument must not be ignored in silence. */
export const STRICT = { additionalProperties: false } as const

type ToolSpecification<Input extends TObject> = {
  /** Dotted, e.g. `mail.send`; served with underscores where a host asks for that. */
  name: string
  title: string
  /** For a model: when to use it, what comes back, one example. Other tools are named with dots. */
  description: string
  scope: Exclude<Access, 'public'>
  input: Input
  output: TObject
  hints: ToolHints
  /** How to mend a call that ended with this error. */
  fixes?: Partial<Record<ErrorCode, string>>
}

/** A tool as the server lists and calls it. */
export type Tool = ToolSpecification<TObject> & {
  /** @throws {ApiError} 400 for arguments that do not fit, and whatever the function behind the tool throws. */
  call(context: ToolContext, args: unknown): Promise<ToolAnswer>
}

/** Makes a tool of its description and a function that gets arguments which fit the input schema. */
export function defineTool<Input extends TObject>(
  specification: ToolSpecification<Input> & {
    run(context: ToolContext, input: Static<Input>): Promise<ToolAnswer>
  },
): Tool {
  const { run, ...tool } = specification
  const schema = TypeCompiler.Compile(tool.input)
  return {
    ...tool,
    async call(context, args) {
      const first = schema.Errors(args).First()
      if (first !== undefined) throw badRequest(describeFault(tool.input, args, first))
      refuseUnstorable(args, '')
      return await run(context, args as Static<Input>)
    },
  }
}

/** What is wrong with the arguments, and which ones there are: a model mends its call from this sentence alone. */
function describeFault(input: TObject, args: unknown, fault: ValueError): string {
  const names = Object.keys(input.properties)
  const required = input.required ?? []
  const takes =
    names.length === 0
      ? 'This tool takes no arguments'
      : `Arguments: ${names.map((name) => (required.includes(name) ? `${name} (required)` : name)).join(', ')}`
  // Before the first fault: an argument is most often missing because its name was misspelt.
  const unknown = Object.keys(args as object).find((name) => !names.includes(name))
  if (unknown !== undefined) return `${unknown} is not an argument of this tool. ${takes}`
  const missing = fault.type === ValueErrorType.ObjectRequiredProperty ? ', and it is missing' : ''
  return `${describeValidationError('arguments', fault)}${missing}. ${takes}`
}
