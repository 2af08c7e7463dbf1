(*
 * Reads worlds as `redlock-sim --actions` writes them, one action a line, and feeds them to
 * [qstep], extracted from Trace.v; each key has a model of its own. Prints the worlds that are
 * refused, with the line and the rule, and counts the others. This file is not proved: it reads, and
 * chooses the grants and lists of a Hold, and the clock of a Read. Native integers hold the numbers
 * of the text, which are below 2^62, and the differences of two clocks; all else is Coq's.
 *)
open Model
open Rules

let rec positive i =
  if i = 1 then XH else if i land 1 = 1 then XI (positive (i lsr 1)) else XO (positive (i lsr 1))
let z i = if i = 0 then Z0 else if i > 0 then Zpos (positive i) else Zneg (positive (-i))
let rec nat i = if i = 0 then O else S (nat (i - 1))
let nats = Array.init 100 nat
let members mask = List.filter (fun i -> mask lsr i land 1 = 1) (List.init 62 Fun.id)

let rec gcd a b = if b = 0 then a else gcd b (a mod b)

exception Refusal of string

(* The world's numbers, and the lists of nodes by which its holds are counted. *)
type world = { title : string; lists : (int * int, int) Hashtbl.t; nodes : int;
               step : quick -> line -> verdict; grown : quick -> grant -> bool;
               covers : z -> grant -> bool }

let world_of first lines =
  Scanf.sscanf first "w %s %s %s %d %d %d %d %d %d %d"
    (fun profile seed cause _ nodes clients slow fast grain max_ttl ->
      let lists = Hashtbl.create 8 in
      let note pair =
        if not (Hashtbl.mem lists pair) then Hashtbl.add lists pair (Hashtbl.length lists) in
      let note_hold l = Scanf.sscanf l "h %d %s %d %d %d %d" (fun _ _ a b c d ->
        note (a, b); note (c, d)) in
      List.iter (fun line -> if line.[0] = 'h' then note_hold line) lines;
      let table = Array.make (Hashtbl.length lists) [] in
      let ids mask = List.map (Array.get nats) (members mask) in
      Hashtbl.iter (fun (a, b) i -> table.(i) <- ids a :: if b = 0 then [] else [ids b]) lists;
      let ns = List.init nodes (Array.get nats) and cs = List.init clients (Array.get nats) in
      (* Only the ratio counts, and small numbers are multiplied faster. *)
      let unit = gcd slow fast in
      let slow = z (slow / unit) and fast = z (fast / unit) in
      let grain = z grain and max_ttl = z max_ttl in
      { title = Printf.sprintf "%s %s (%s)" profile seed cause; lists; nodes;
        step = qstep ns cs (Array.to_list table) slow fast grain max_ttl;
        grown = grown max_ttl; covers = covers slow fast grain })

(* The model of a key, the clock readings that it has been moved to, and its tokens' names. *)
type key = { mutable q : quick; mutable at : int list; names : (string, token) Hashtbl.t;
             drawn : nat array (* by client: the number of its next token *) }

let token key text = match Hashtbl.find_opt key.names text with
  | Some t -> t
  | None ->
      let c = Scanf.sscanf text "%d." Fun.id in
      let t = (nats.(c), key.drawn.(c)) in
      (* Shares its memory with the earlier ones: the numbers of 10,000 tokens are unary. *)
      key.drawn.(c) <- S key.drawn.(c); Hashtbl.add key.names text t; t

(* A grant of each node that voted: one that will do, or else any, to see what is wrong with it. *)
let choose w q t votes until =
  let asked g = match g.said with Asked _ -> true | Pushed _ -> false in
  let good g = asked g && w.grown q g && w.covers until g in
  let all = (of_token q.tokens t).grants in
  let of_node ok n = List.find_opt (fun g -> g.place = nats.(n) && ok g) all in
  let nodes = if votes = 0 then List.init w.nodes Fun.id else members votes in
  (List.filter_map (of_node good) nodes, List.filter_map (of_node asked) nodes)

(* The actions that a line may be; the last one names the rule if none is allowed. *)
let actions w key line =
  let token = token key and kind c = if c = 'R' then Renew else Take in
  let scan form = Scanf.sscanf line form in
  match line.[0] with
  | 's' -> scan "s %d %s %c %d" (fun _ t k d -> [LSend (token t, kind k, z d)])
  | 'x' -> scan "x %d %s %c %d %d %d %d" (fun _ t k s d n e ->
      [LExec ({ tok = token t; what = kind k; start = z s; ttl = z d }, nats.(n), z e)])
  | 'p' -> scan "p %d %s %d %d" (fun _ t n e -> [LPass (token t, nats.(n), z e)])
  | 'r' -> scan "r %d %s %d %d" (fun _ t n e ->
      let is_it g = g.place = nats.(n) && g.said = Pushed (z e) in
      match List.find_opt is_it (of_token key.q.tokens (token t)).grants with
      (* The node's own clock is the least upper bound that a client could know. *)
      | Some g -> [LRead (g, get Z0 key.q.ntime nats.(n))]
      | None -> raise (Refusal (name No_such_push)))
  | 'd' -> scan "d %d %s %d" (fun _ t n -> [LDelete (token t, nats.(n))])
  | 'h' -> scan "h %d %s %d %d %d %d %d %d" (fun _ t a b c d votes e ->
      let t = token t and list pair = nats.(Hashtbl.find w.lists pair) in
      let fine, any = choose w key.q t votes (z e) in
      [LHold (t, list (c, d), fine, z e); LHold (t, list (a, b), fine, z e);
       LHold (t, list (a, b), any, z e)])
  | 'l' -> scan "l %d %s" (fun _ t -> [LPart (token t)])
  | 'e' -> scan "e %d %s" (fun _ t -> [LEnd (token t)])
  | 'f' -> scan "f %d %d" (fun _ n -> [LForget nats.(n)])
  | _ -> raise (Refusal "this is no action")

let rec take w key = function
  | [] -> ()
  | l :: rest -> match w.step key.q l with
    | Next q -> key.q <- q
    | Refused why -> if rest = [] then raise (Refusal (name why)) else take w key rest

(* Moves a key's clocks to the latest readings. Foreign clients come last: the first client's. *)
let tick w key now =
  if now <> key.at then begin
    let moved = List.map2 (fun a b -> z (a - b)) now key.at in
    let cs = List.filteri (fun i _ -> i >= w.nodes) moved in
    key.at <- now;
    take w key [LTick (List.filteri (fun i _ -> i < w.nodes) moved, cs @ [List.hd cs])]
  end

(* By the theorem, tokens that are valid at once have no list in common: lists two stages apart. *)
let alone key t =
  let is_valid u = List.exists (fun (_, until) -> Z.ltb (get Z0 key.q.ctime (fst u)) until)
    (of_token key.q.tokens u).holds in
  if Hashtbl.fold (fun _ u found -> found || (u <> t && is_valid u)) key.names false then
    raise (Refusal "another token is valid by other lists of nodes")

(* Returns how a world ends: accepted, left out, refused, which it prints, or cut off by a crash. *)
let run first lines =
  let w = world_of first lines in
  let keys = Hashtbl.create 4 and doubted = Hashtbl.create 8 in
  let now = ref [] and at = ref "" in
  let key i = match Hashtbl.find_opt keys i with Some key -> key | None ->
    let key = { q = qstart; at = List.map (fun _ -> 0) !now; names = Hashtbl.create 64;
                drawn = Array.make 100 O } in
    Hashtbl.add keys i key; key in
  let follow line = match line.[0] with
    | 't' -> now := List.map int_of_string (List.tl (String.split_on_char ' ' line))
    | c ->
        let i, t = Scanf.sscanf line "%c %d %s" (fun _ i t -> (i, t)) in
        let is_uncounted = c = 'h' &&
          Scanf.sscanf line "h %d %s %d %d %d %d %d" (fun _ _ _ _ _ _ votes -> votes = 0) in
        at := line;
        tick w (key i) !now;
        try
          if c = 'u' then raise (Refusal "in doubt");
          take w (key i) (actions w (key i) line);
          if c = 'h' then alone (key i) (token (key i) t);
          if c = 'h' && not is_uncounted then Hashtbl.remove doubted (i, t)
        with
        (* A hold in doubt relies on a memory whose loss no client could notice, and so may a later
           one of its token whose nodes are not known, as after a handover: the model has neither. *)
        | Refusal _ when c = 'u' || (is_uncounted && Hashtbl.mem doubted (i, t)) ->
            Hashtbl.replace doubted (i, t) ();
            take w (key i) [LPart (token (key i) t)] in
  match lines with
  | line :: _ when line.[0] = 'o' -> "left out: " ^ String.sub line 2 (String.length line - 2)
  | _ -> match List.iter follow lines with
    | () -> "accepted"
    | exception Refusal why -> Printf.printf "%s refused: %s: \"%s\"\n%!" w.title why !at; "refused"
    | exception (Scanf.Scan_failure _ | End_of_file | Failure _ | Invalid_argument _) -> "cut off"

let () =
  (* Most values live for one line: 8 MB of them are left to die at once. *)
  Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 20 };
  let counts = Hashtbl.create 16 in
  let finish first lines = if first <> "" then begin
    let what = Scanf.sscanf first "w %s %s %s" (fun profile _ cause ->
      Printf.sprintf "%s, %s: %s" profile cause (run first (List.rev lines))) in
    Hashtbl.replace counts what (1 + Option.value ~default:0 (Hashtbl.find_opt counts what))
  end in
  let rec read first lines = match input_line stdin with
    | line when line <> "" && line.[0] = 'w' -> finish first lines; read line []
    | line -> read first (if line = "" then lines else line :: lines)
    | exception End_of_file -> finish first lines in
  read "" [];
  List.iter print_endline (List.sort compare
    (Hashtbl.fold (fun what n all -> Printf.sprintf "%6d %s" n what :: all) counts []))
