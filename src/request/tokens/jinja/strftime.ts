import { unsupported } from "./templateError.ts";

const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const MONTHS = "January February March April May June July August September October November December".split(" ");

/** datetime.strftime in local time and the C locale, the directives that templates use. */
export function strftime(time: Date, format: string): string {
  return format.replaceAll(/%(-?[a-zA-Z%])/g, (_, directive: string) => {
    const text = directive.startsWith("-")
      ? written(time, directive.slice(1)).replace(/^0+(?=\d)/, "")
      : written(time, directive);
    return text;
  });
}

function written(time: Date, directive: string): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = DAYS[time.getDay()]!;
  const month = MONTHS[time.getMonth()]!;
  switch (directive) {
    case "%":
      return "%";
    case "A":
      return day;
    case "a":
      return day.slice(0, 3);
    case "B":
      return month;
    case "b":
      return month.slice(0, 3);
    case "d":
      return two(time.getDate());
    case "H":
      return two(time.getHours());
    case "I":
      return two(time.getHours() % 12 || 12);
    case "M":
      return two(time.getMinutes());
    case "m":
      return two(time.getMonth() + 1);
    case "p":
      return time.getHours() < 12 ? "AM" : "PM";
    case "S":
      return two(time.getSeconds());
    case "Y":
      return String(time.getFullYear());
    case "y":
      return two(time.getFullYear() % 100);
    default:
      throw unsupported(`strftime_now with %${directive}`);
  }
}
