#include "base/node.hpp"

#include <algorithm>

namespace forerun {

const Node* Node::find(std::string_view key) const {
  const auto at = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) { return entry.key == key; });
  return at == entries.end() ? nullptr : &at->value;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

namespace {

constexpr std::size_t kMostShown = 60;
constexpr int kMostParts = 64;

/// The first bytes of a text, cut between characters of UTF-8.
std::string shortened(const std::string& text) {
  if (text.size() <= kMostShown) return text;
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "'" + shortened(node.scalar) + "'";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
  }
  return "";
}

void set_dotted(Node& root, std::string_view dotted, Node value) {
  const auto refuse = [&](const std::string& problem) {
    throw InputError(value.mark.place(), std::string(dotted), problem);
  };
  if (std::count(dotted.begin(), dotted.end(), '.') >= kMostParts) {
    refuse("more than " + std::to_string(kMostParts) + " parts");
  }
  Node* at = &root;
  for (std::string_view rest = dotted;;) {
    const std::size_t dot = rest.find('.');
    const std::string head(rest.substr(0, dot));
    if (head.empty()) refuse("an empty part in a dotted key");
    if (at->kind == Node::Kind::kNull) at->kind = Node::Kind::kMapping;
    if (at->kind != Node::Kind::kMapping) {
      refuse("cannot be set inside " + describe(*at) + "; a mapping is wanted there");
    }
    Node* child = at->find(head);
    if (child == nullptr) {
      at->entries.push_back({head, value.mark, Node{}});
      child = &at->entries.back().value;
    }
    at = child;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  *at = std::move(value);
}

Node overlaid(Node base, const Node& own) {
  if (base.kind != Node::Kind::kMapping || own.kind != Node::Kind::kMapping) return own;
  for (const Node::Entry& entry : own.entries) {
    if (Node* known = base.find(entry.key)) {
      *known = overlaid(std::move(*known), entry.value);
    } else {
      base.entries.push_back(entry);
    }
  }
  base.mark = own.mark;
  return base;
}

}  // namespace forerun
