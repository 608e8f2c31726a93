// Boost.Beast and Asio under short names. They take long to compile: for http.cpp and client.cpp alone.
#pragma once

// The thread sanitizer does not know fences; what they guard is guarded by locks, too.
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

namespace pipeweaver::service {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

}  // namespace pipeweaver::service
