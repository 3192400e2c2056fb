import type { Static, TObject } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import type { Access } from '../../docs/routeTable.ts'
import { badRequest, type ErrorCode } from '../../http/errors.ts'
import { refuseUnstorable } from '../../http/input/body.ts'
import { refuseUnknownFields } from '../../http/input/unknownFields.ts'
import { describeValidationError } from '../../http/input/validation.ts'
import type { Caller } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'

/** Holds the data that one call of an MCP tool needs. */
export type ToolContext = {
  services: Services
  /**
   * Holds the HTTP request of the tool call. By this request, `services.reads` chooses the database server for a list.
   */
  request: Request
  projectId: string
  inboxAddress: string
  /**
   * Holds the caller of the tool. The operation checks the scopes of this caller, and names the caller in the audit
   * log.
   */
  caller: Caller
  /**
   * Holds a signal that aborts when the tool call is cancelled or its connection closes. A waiting tool must then end.
   */
  signal: AbortSignal
}

/**
 * Holds the result of an MCP tool: data that matches the tool's output schema, and a short text for hosts that ignore
 * structuredContent.
 */
export type ToolAnswer = { data: Record<string, unknown>; text: string }

/** Describes the hints of an MCP tool (MCP ToolAnnotations). */
export type ToolHints = {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

/** Holds the hints of a read-only MCP tool that contacts no system outside this service. */
export const READS: ToolHints = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** Makes a schema refuse unknown arguments. Otherwise the service would silently ignore a misspelt argument. */
export const STRICT = { additionalProperties: false } as const

type ToolSpecification<Input extends TObject> = {
  /**
   * Holds the name of the MCP tool, written with a dot, such as `mail.send`. An MCP host can request tool names with
   * underscores instead of dots (naming.ts).
   */
  name: string
  title: string
  /**
   * Describes the tool for a language model: its purpose, its result and one example. Names of other MCP tools are
   * written with dots.
   */
  description: string
  scope: Exclude<Access, 'public'>
  input: Input
  output: TObject
  hints: ToolHints
  /** Holds advice to the language model for each error code. */
  fixes?: Partial<Record<ErrorCode, string>>
}

/** Describes an MCP tool as the server lists and calls it. */
export type Tool = ToolSpecification<TObject> & {
  /**
   * Checks the arguments of a tool call and runs the tool. @throws {ApiError} 400 for invalid arguments of the tool,
   * and the errors of `run`.
   */
  call(context: ToolContext, args: unknown): Promise<ToolAnswer>
}

/**
 * Turns a single text into an array with one element, because language models often write one label or address without
 * an array.
 */
function withLists({ properties }: TObject, args: unknown): unknown {
  if (typeof args !== 'object' || args === null) return args
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => {
      const isList = properties[name]?.type === 'array' && properties[name].items?.type === 'string'
      return [name, isList && typeof value === 'string' ? [value] : value]
    }),
  )
}

/** Creates an MCP tool. Its function `run` gets only arguments that match the tool's input schema. */
export function defineTool<Input extends TObject>(
  specification: ToolSpecification<Input> & {
    run(context: ToolContext, input: Static<Input>): Promise<ToolAnswer>
  },
): Tool {
  const { run, ...tool } = specification
  const schema = TypeCompiler.Compile(tool.input)
  return {
    ...tool,
    async call(context, given) {
      const args = withLists(tool.input, given)
      const first = schema.Errors(args).First()
      // The function `describeFault` refuses unknown fields at the top level of the arguments, and
      // `refuseUnknownFields` refuses them in the nested objects, which the REST API also uses.
      if (unknownArgument(tool.input, args) === undefined) refuseUnknownFields(args, tool.input)
      if (first !== undefined) throw badRequest(describeFault(tool.input, args, first))
      refuseUnstorable(args, '')
      return await run(context, args as Static<Input>)
    },
  }
}

const unknownArgument = ({ properties }: TObject, args: unknown): string | undefined =>
  Object.keys(args as object).find((name) => !Object.hasOwn(properties, name))

/**
 * Returns a text that names the invalid argument and lists all arguments, because a language model must be able to
 * correct its call from this text alone.
 */
function describeFault(input: TObject, args: unknown, fault: ValueError): string {
  const names = Object.keys(input.properties)
  const required = input.required ?? []
  const takes =
    names.length === 0
      ? 'This tool takes no arguments'
      : `Arguments: ${names.map((name) => (required.includes(name) ? `${name} (required)` : name)).join(', ')}`
  // The error names an unknown argument before a missing one, because a misspelt name is the usual cause of a missing
  // argument.
  const unknown = unknownArgument(input, args)
  if (unknown !== undefined) return `${unknown} is not an argument of this tool. ${takes}`
  const missing = fault.type === ValueErrorType.ObjectRequiredProperty ? ', and it is missing' : ''
  return `${describeValidationError('arguments', fault)}${missing}. ${takes}`
}
