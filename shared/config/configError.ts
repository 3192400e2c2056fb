/**
 * Reports settings that cannot be used. The error's `message` has one line for each unusable setting: the variable,
 * then the rule for its value.
 */
export class ConfigError extends Error {}

/**
 * Names a variable, and the rule that its value breaks. The description of a fault never holds the variable's value,
 * because the value can be a key or hold a password.
 */
export type Fault = { variable: string; rule: string }

export const faultLine = ({ variable, rule }: Fault): string => `${variable}: ${rule}`
