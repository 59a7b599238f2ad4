;; The two inner loops of src/request. The bytes of this module stand in kernel.ts; after a change:
;;   npx -p wabt wat2wasm kernel.wat --output=- | base64 -w 112
(module
  (memory (export "memory") 4)

  (func $round (param $lane i64) (param $input i64) (result i64)
    (i64.mul
      (i64.rotl (i64.add (local.get $lane) (i64.mul (local.get $input) (i64.const 0xC2B2AE3D27D4EB4F))) (i64.const 31))
      (i64.const 0x9E3779B185EBCA87)))

  (func $merge (param $hash i64) (param $lane i64) (result i64)
    (i64.add
      (i64.mul
        (i64.xor (local.get $hash) (call $round (i64.const 0) (local.get $lane)))
        (i64.const 0x9E3779B185EBCA87))
      (i64.const 0x85EBCA77C2B2AE63)))

  ;; XXH64 over equal chunks, each seeded with the hash of the chunk before it.
  ;; Hashes `chunks` chunks of `chunkBytes` (a multiple of 32) from `at` on. The seed is the i64 just before `out`;
  ;; the hashes go to `out`, so that each is the seed of the next.
  (func (export "chain") (param $at i32) (param $chunks i32) (param $chunkBytes i32) (param $out i32)
    (local $end i32) (local $seed i64) (local $hash i64)
    (local $a i64) (local $b i64) (local $c i64) (local $d i64)
    (block $done
      (loop $nextChunk
        (br_if $done (i32.eqz (local.get $chunks)))
        (local.set $seed (i64.load (i32.sub (local.get $out) (i32.const 8))))
        (local.set $a (i64.add (local.get $seed) (i64.const 0x60EA27EEADC0B5D6)))
        (local.set $b (i64.add (local.get $seed) (i64.const 0xC2B2AE3D27D4EB4F)))
        (local.set $c (local.get $seed))
        (local.set $d (i64.sub (local.get $seed) (i64.const 0x9E3779B185EBCA87)))
        (local.set $end (i32.add (local.get $at) (local.get $chunkBytes)))
        (loop $nextStripe
          (local.set $a (call $round (local.get $a) (i64.load (local.get $at))))
          (local.set $b (call $round (local.get $b) (i64.load offset=8 (local.get $at))))
          (local.set $c (call $round (local.get $c) (i64.load offset=16 (local.get $at))))
          (local.set $d (call $round (local.get $d) (i64.load offset=24 (local.get $at))))
          (local.set $at (i32.add (local.get $at) (i32.const 32)))
          (br_if $nextStripe (i32.lt_u (local.get $at) (local.get $end))))
        (local.set $hash
          (i64.add
            (i64.add (i64.rotl (local.get $a) (i64.const 1)) (i64.rotl (local.get $b) (i64.const 7)))
            (i64.add (i64.rotl (local.get $c) (i64.const 12)) (i64.rotl (local.get $d) (i64.const 18)))))
        (local.set $hash (call $merge (local.get $hash) (local.get $a)))
        (local.set $hash (call $merge (local.get $hash) (local.get $b)))
        (local.set $hash (call $merge (local.get $hash) (local.get $c)))
        (local.set $hash (call $merge (local.get $hash) (local.get $d)))
        (local.set $hash (i64.add (local.get $hash) (i64.extend_i32_u (local.get $chunkBytes))))
        (local.set $hash
          (i64.mul
            (i64.xor (local.get $hash) (i64.shr_u (local.get $hash) (i64.const 33)))
            (i64.const 0xC2B2AE3D27D4EB4F)))
        (local.set $hash
          (i64.mul
            (i64.xor (local.get $hash) (i64.shr_u (local.get $hash) (i64.const 29)))
            (i64.const 0x165667B19E3779F9)))
        (local.set $hash (i64.xor (local.get $hash) (i64.shr_u (local.get $hash) (i64.const 32))))
        (i64.store (local.get $out) (local.get $hash))
        (local.set $out (i32.add (local.get $out) (i32.const 8)))
        (local.set $chunks (i32.sub (local.get $chunks) (i32.const 1)))
        (br $nextChunk))))

  ;; Position of the first quote in at..end that no odd run of backslashes precedes; `end` if there is none.
  ;; Reads up to 15 bytes past `end`.
  (func (export "closingQuote") (param $at i32) (param $end i32) (result i32)
    (local $start i32) (local $quotes i32) (local $quote i32) (local $run i32)
    (local.set $start (local.get $at))
    (block $none
      (loop $nextBlock
        (br_if $none (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $quotes
          (i8x16.bitmask (i8x16.eq (v128.load (local.get $at)) (i8x16.splat (i32.const 0x22)))))
        (block $noneHere
          (loop $nextQuote
            (br_if $noneHere (i32.eqz (local.get $quotes)))
            (local.set $quote (i32.add (local.get $at) (i32.ctz (local.get $quotes))))
            (br_if $none (i32.ge_u (local.get $quote) (local.get $end)))
            (local.set $run (local.get $quote))
            (block $counted
              (loop $nextBackslash
                (br_if $counted (i32.le_u (local.get $run) (local.get $start)))
                (br_if $counted
                  (i32.ne (i32.load8_u (i32.sub (local.get $run) (i32.const 1))) (i32.const 0x5c)))
                (local.set $run (i32.sub (local.get $run) (i32.const 1)))
                (br $nextBackslash)))
            (if (i32.eqz (i32.and (i32.sub (local.get $quote) (local.get $run)) (i32.const 1)))
              (then (return (local.get $quote))))
            (local.set $quotes (i32.and (local.get $quotes) (i32.sub (local.get $quotes) (i32.const 1))))
            (br $nextQuote)))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $nextBlock)))
    (local.get $end)))
