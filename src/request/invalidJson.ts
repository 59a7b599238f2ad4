import { RouterError } from "#src/errors/routerError.ts";

export function invalidJson(problem: string, at: number): RouterError {
  return new RouterError("invalid_json", `The request body is not valid JSON: ${problem} at byte ${at}.`, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
  });
}
